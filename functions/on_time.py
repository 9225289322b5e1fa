"""On time: how many of the jobs that are handed over are visible within a minute of their due time, by queue."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from dueline.config import metrics
from dueline.model.job import Job
from dueline.protocol.dispatch import Dispatcher, Handed

# SQS shows a job when it is due or, if it was sent after that, when it was sent.
ON_TIME = timedelta(seconds=60)


class HandedOver:
    """Counts the jobs of an invocation that were handed over, by queue. Threads may note at once."""

    def __init__(self) -> None:
        self._noted: list[Counter[tuple[str, str]]] = []

    def note(self, jobs: Sequence[Job], *, now: datetime) -> None:
        """Count jobs that were sent just now."""
        latest = now - ON_TIME
        self._noted.append(
            Counter((job.id.queue, metrics.ON_TIME if job.id.due >= latest else metrics.DELAYED) for job in jobs)
        )

    def taken(self) -> dict[str, dict[str, int]]:
        """Return the metrics of each queue, and begin anew."""
        noted, self._noted = self._noted, []
        counted = sum(noted, Counter[tuple[str, str]]())
        queues = dict.fromkeys(queue for queue, _ in counted)
        return {queue: _values(counted[queue, metrics.ON_TIME], counted[queue, metrics.DELAYED]) for queue in queues}


def _values(on_time: int, delayed: int) -> dict[str, int]:
    return {metrics.DISPATCHED: on_time + delayed, metrics.ON_TIME: on_time, metrics.DELAYED: delayed}


@dataclass(frozen=True, kw_only=True)
class NotingDispatcher(Dispatcher):
    """Notes what it sent as soon as it did: one pass over a partition can take longer than a minute."""

    handed_over: HandedOver

    @classmethod
    def of(cls, dispatcher: Dispatcher, *, handed_over: HandedOver) -> Self:
        """Return a dispatcher that sends as another one does."""
        return cls(
            level=dispatcher.level,
            parking=dispatcher.parking,
            clock=dispatcher.clock,
            jitter=dispatcher.jitter,
            spread=dispatcher.spread,
            precise=dispatcher.precise,
            handed_over=handed_over,
        )

    def hand_over(self, jobs: Sequence[Job], *, until: float) -> Handed:
        handed = super().hand_over(jobs, until=until)
        self.handed_over.note(handed.dispatched, now=self.clock.now())
        return handed
