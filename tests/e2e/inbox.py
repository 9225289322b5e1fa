"""What arrives in a queue, as a plain SQS consumer sees it."""

from contextlib import ExitStack

import httpx

from local.demonstration import Landed, consuming
from local.emulator import Emulator
from tests.waiting import wait_until


class Inbox:
    """Collects what arrives in a queue until it is closed."""

    def __init__(self, emulator: Emulator, url: str) -> None:
        self.landed: list[Landed] = []
        self._stack = ExitStack()
        self._stack.enter_context(consuming(emulator, url, self.landed.append))

    def close(self) -> None:
        self._stack.close()

    def of(self, id: str) -> list[Landed]:
        return [landed for landed in self.landed if landed.id == id]


def let_all_come(http: httpx.Client, queue: str, inbox: Inbox) -> None:
    """Wait until what has become visible in a queue so far has come: until a job that is sent after it has."""
    marker = http.post(f"/queues/{queue}/jobs", json={"payload": "comes last"}).json()["id"]
    assert wait_until(lambda: bool(inbox.of(marker)))


def wait_until_ingested(emulator: Emulator, inbound_url: str) -> None:
    """Wait until ingest has acknowledged all that was sent to the inbound queue."""
    sqs, names = emulator.client("sqs"), ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def is_empty() -> bool:
        depths = sqs.get_queue_attributes(QueueUrl=inbound_url, AttributeNames=names)["Attributes"]
        return not any(int(depths[name]) for name in names)

    assert wait_until(is_empty)
