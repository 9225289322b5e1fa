"""A plain SQS consumer: reading a job needs nothing of Dueline's library."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from local.emulator import Emulator

_LONG_POLL_SECONDS = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Landed:
    """A job that a consumer received, with its message group and its run of a schedule, if it has one."""

    id: str
    payload: str
    due: datetime
    at: datetime
    group: str | None = None
    run: str | None = None

    @property
    def lateness(self) -> float:
        """Seconds from due to received."""
        return (self.at - self.due).total_seconds()


@contextmanager
def consuming(emulator: Emulator, url: str, on_job: Callable[[Landed], None]) -> Iterator[None]:
    """Receive and delete the messages of a queue in a thread, handing each to `on_job`, until the context ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_consume, args=(emulator, url, on_job, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _consume(emulator: Emulator, url: str, on_job: Callable[[Landed], None], stop: threading.Event) -> None:
    sqs = emulator.client("sqs")
    while not stop.is_set():
        answer = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=_LONG_POLL_SECONDS,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        at = datetime.now(UTC)
        for message in answer.get("Messages", []):
            attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
            due = datetime.fromisoformat(attributes["dueline-due"])
            group = message.get("Attributes", {}).get("MessageGroupId")
            run = attributes.get("dueline-schedule")
            on_job(Landed(id=attributes["dueline-id"], payload=message["Body"], due=due, at=at, group=group, run=run))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
