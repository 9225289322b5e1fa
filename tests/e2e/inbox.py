"""What arrives in a queue, as a plain SQS consumer sees it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.emulator import Emulator
from tests.waiting import wait_until

_LONG_POLL_SECONDS = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Landed:
    """A job that a consumer received, with its run of a schedule, if it has one."""

    id: str
    payload: str
    due: datetime
    at: datetime
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
        )
        at = datetime.now(UTC)
        for message in answer.get("Messages", []):
            attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
            due = datetime.fromisoformat(attributes["dueline-due"])
            run = attributes.get("dueline-schedule")
            on_job(Landed(id=attributes["dueline-id"], payload=message["Body"], due=due, at=at, run=run))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def wait_until_ingested(emulator: Emulator, inbound_url: str) -> None:
    """Wait until ingest has acknowledged all that was sent to the inbound queue."""
    sqs, names = emulator.client("sqs"), ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def is_empty() -> bool:
        depths = sqs.get_queue_attributes(QueueUrl=inbound_url, AttributeNames=names)["Attributes"]
        return not any(int(depths[name]) for name in names)

    assert wait_until(is_empty)


def dead_letter(emulator: Emulator, url: str) -> tuple[str, dict[str, str]]:
    """Wait until a message is in a dead-letter queue; return its body and its attributes."""
    received: list[Any] = []

    def receive() -> bool:
        answer = emulator.client("sqs").receive_message(QueueUrl=url, MessageAttributeNames=["All"])
        received.extend(answer.get("Messages", []))
        return bool(received)

    assert wait_until(receive), "there is none"
    attributes = received[0]["MessageAttributes"]
    return received[0]["Body"], {name: value["StringValue"] for name, value in attributes.items()}
