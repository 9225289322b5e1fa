"""What arrives in a queue, as a plain SQS consumer sees it, and how late by SQS's own clock."""

import json
import math
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError

from dueline import Job
from tests.waiting import HANG_SECONDS, wait_until

_REST_SECONDS = 1.0
# Each poll costs CPU, the local AWS's too.
_LONG_POLL_SECONDS = 4
_TIMES: Any = ["SentTimestamp", "ApproximateFirstReceiveTimestamp", "MessageGroupId"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Landed:
    """A message, and when it was sent and first received. `id` is empty for what Dueline did not send."""

    body: str
    attributes: dict[str, str]
    sent: datetime
    visible: datetime
    group: str | None = None

    @property
    def id(self) -> str:
        return self.attributes.get("dueline-id", "")

    @property
    def due(self) -> datetime:
        return datetime.fromisoformat(self.attributes["dueline-due"])

    @property
    def lateness(self) -> float:
        """Seconds from due to visible."""
        return (self.visible - self.due).total_seconds()


class Inbox:
    """Receives and deletes what arrives in a queue while it is open, and keeps it in `landed`, which may be shared."""

    def __init__(self, sqs: Any, queue: str, *, threads: int, landed: list[Landed] | None = None) -> None:
        self._sqs, self._url = sqs, sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        self._number, self._threads, self._stop = threads, list[threading.Thread](), threading.Event()
        self.landed: list[Landed] = [] if landed is None else landed

    def open(self) -> Self:
        if not self._threads:
            self._stop.clear()
            self._threads = [threading.Thread(target=self._receive, daemon=True) for _ in range(self._number)]
            for thread in self._threads:
                thread.start()
        return self

    def stop(self) -> None:
        """Receive no more once the present polls have ended."""
        self._stop.set()

    def close(self) -> None:
        self.stop()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def of(self, id: str) -> list[Landed]:
        return [each for each in list(self.landed) if each.id == id]

    def wait_for(self, *ids: str, seconds: float = HANG_SECONDS) -> Landed:
        """Wait until each of these jobs has come; return the first message of the first. Fails when one is lost."""

        def missing() -> set[str]:
            return set(ids) - {each.id for each in list(self.landed)}

        assert wait_until(lambda: not missing(), seconds=seconds), f"lost: {sorted(missing())[:5]} of {len(ids)}"
        return self.of(ids[0])[0]

    def _receive(self) -> None:
        while not self._stop.is_set():
            try:
                self._receive_once()
            except (BotoCoreError, ClientError):
                self._stop.wait(_REST_SECONDS)

    def _receive_once(self) -> None:
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=_LONG_POLL_SECONDS,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=_TIMES,
        )
        if messages := answer.get("Messages", []):
            self.landed += map(_landed, messages)
            entries = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)


def _landed(message: Any) -> Landed:
    system = message["Attributes"]
    attributes = message.get("MessageAttributes", {})
    return Landed(
        body=message["Body"],
        # Those of bytes have no text.
        attributes={name: each["StringValue"] for name, each in attributes.items() if "StringValue" in each},
        sent=_instant(system["SentTimestamp"]),
        visible=_instant(system["ApproximateFirstReceiveTimestamp"]),
        group=system.get("MessageGroupId"),
    )


def _instant(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def lateness(jobs: Collection[Job], landed: Sequence[Landed]) -> list[float]:
    """Return, in order, how many seconds after it was due each job that came was visible."""
    first = {each.id: each for each in reversed(list(landed))}
    return sorted((first[job.id].visible - job.due).total_seconds() for job in jobs if job.id in first)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the least of the ordered values that so many percent of them do not exceed; NaN if there are none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan


def jobs_of(results: Sequence[object]) -> list[Job]:
    """Return the jobs of a `schedule_many`. Fails when one was refused."""
    refused = [each for each in results if not isinstance(each, Job)]
    assert not refused, refused[:3]
    return [each for each in results if isinstance(each, Job)]


def compact(payload: object) -> str:
    return json.dumps(payload, separators=(",", ":"))
