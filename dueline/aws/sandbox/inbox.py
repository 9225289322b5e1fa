"""An inbox: whatever comes in a queue, by SQS's own clock."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from dueline.model.message import ID
from dueline.verify.sandbox import Landed

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_WAIT_SECONDS = 3
_REST_SECONDS = 1.0
_TOLD: Any = ["SentTimestamp", "ApproximateFirstReceiveTimestamp"]


@contextmanager
def receiving(client: "SQSClient", url: str, *, lanes: int) -> Iterator[list[Landed]]:
    """Receive and delete a queue's messages, by so many threads, while the context is open.

    Yields the list that they are added to.
    """
    landed = list[Landed]()
    with _again_and_again(lambda: _receive_once(client, url, landed), lanes=lanes):
        yield landed


def failing(client: "SQSClient", url: str) -> AbstractContextManager[None]:
    """Receive a queue's messages again and again, and delete none, while the context is open."""

    def fail() -> None:
        client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, VisibilityTimeout=0)

    return _again_and_again(fail, lanes=1)


@contextmanager
def _again_and_again(step: Callable[[], None], *, lanes: int) -> Iterator[None]:
    stop = threading.Event()
    threads = [threading.Thread(target=_repeat, args=(step, stop), name="inbox", daemon=True) for _ in range(lanes)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _repeat(step: Callable[[], None], stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            step()
        except (BotoCoreError, ClientError):
            # What is lost is told by what has not come in the end.
            stop.wait(_REST_SECONDS)


def _receive_once(client: "SQSClient", url: str, landed: list[Landed]) -> None:
    answer = client.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        WaitTimeSeconds=_WAIT_SECONDS,
        MessageAttributeNames=[ID],
        MessageSystemAttributeNames=_TOLD,
    )
    if messages := answer.get("Messages", []):
        landed += map(_landed, messages)
        entries: Any = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
        client.delete_message_batch(QueueUrl=url, Entries=entries)


def _landed(message: Any) -> Landed:
    return Landed(
        id=message.get("MessageAttributes", {}).get(ID, {}).get("StringValue", ""),
        body=message["Body"],
        sent=_instant(message["Attributes"]["SentTimestamp"]),
        visible=_instant(message["Attributes"]["ApproximateFirstReceiveTimestamp"]),
    )


def _instant(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
