"""A trial: what a check is handed to do its work with."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import cycle
from typing import Any, TypeVar

from dueline.client.answers import Job
from dueline.client.new_job import NewJob
from dueline.errors import DuelineError
from dueline.verify.sandbox import Landed, Sandbox

_LOOK_SECONDS = 0.5
# How long after it is due a job is given up as lost. The invariants allow a minute; a receive takes some seconds.
_GRACE = timedelta(seconds=90)
# A machine that has much else to do is no defect.
_LOCAL_GRACE = timedelta(minutes=5)

T = TypeVar("T")
Told = Callable[[str, int, int], None]


class Scale(StrEnum):
    """How much is sent: quick to try it, full for what the bounds are about."""

    QUICK = "quick"
    FULL = "full"


def by_scale(scale: Scale, *, quick: T, full: T) -> T:
    return full if scale is Scale.FULL else quick


class NotScheduled(Exception):
    """AWS did not take what a check must send: the check has nothing to judge, and fails."""


class NotDeployed(Exception):
    """A deployment failed that a check needs, or could not be taken back; the message has what was told."""


class Stopped(Exception):  # it is no error
    """The run is to end, and this check with it: it has no result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """The sandbox, how much to send, the run's name, which is in each payload, and whom to tell of progress.

    `is_later`: look what came of what an earlier run began.
    """

    sandbox: Sandbox
    scale: Scale
    run: str
    chance: random.Random
    tell: Told = lambda _what, _done, _of: None
    is_stopped: Callable[[], bool] = lambda: False
    is_later: bool = False

    @property
    def now(self) -> datetime:
        return self.sandbox.clock.now()

    @property
    def grace(self) -> timedelta:
        """How long after it is due a job is waited for."""
        return _LOCAL_GRACE if self.sandbox.is_local else _GRACE

    @property
    def table_after(self) -> timedelta:
        """After how long a job must be due at least to go by the table, with time to be sent meanwhile."""
        return timedelta(seconds=self.sandbox.periods.direct_horizon + 5)

    @property
    def spread(self) -> timedelta:
        """Over how long due times are spread so that a fence, which jumps by a tick's period, falls among them."""
        periods = self.sandbox.periods
        return timedelta(seconds=3 * (periods.direct_horizon - periods.lookahead))

    def instants(self, count: int, *, after: timedelta, within: timedelta) -> list[datetime]:
        """Return random instants, in order, at any fraction of a second, from `after` on and `within` so long."""
        start = self.now + after
        return sorted(start + within * self.chance.random() for _ in range(count))

    def new_job(self, check: str, number: int, *, at: datetime, **more: Any) -> NewJob:
        return NewJob(payload=self.payload(check, number), at=at, **more)

    def payload(self, check: str, number: int) -> dict[str, object]:
        return {"verify": self.run, "check": check, "n": number}

    def schedule(
        self, queue: str, check: str, dues: Sequence[datetime], *, priorities: Sequence[int] = (1,)
    ) -> list[Job]:
        """Schedule a job at each instant, numbered in order, by these priorities in turn. Raises NotScheduled."""
        self.tell(f"scheduling {len(dues):,} jobs", 0, len(dues))
        jobs = [
            self.new_job(check, number, at=due, priority=priority)
            for (number, due), priority in zip(enumerate(dues), cycle(priorities), strict=False)
        ]
        return taken(self.sandbox.client.schedule_many(queue, jobs))

    def wait(
        self, what: str, done: Callable[[], int], *, of: int, until: datetime, every: float = _LOOK_SECONDS
    ) -> None:
        """Wait until so many are done, or until an instant; look every so many seconds."""
        while (count := done()) < of and self.now < until:
            self.tell(what, count, of)
            self.sleep(every)
        self.tell(what, count, of)

    def wait_for(self, jobs: Sequence[Job], landed: Sequence[Landed]) -> None:
        """Wait until all these jobs have landed, or are given up as lost."""
        ids, until = {job.id for job in jobs}, max(job.due for job in jobs) + self.grace

        def came() -> int:
            return len(ids & {each.id for each in list(landed)})

        self.wait(f"waiting for {len(ids):,} jobs to come", came, of=len(ids), until=until)

    def pause(self, what: str, *, until: datetime) -> None:
        """Wait until an instant, and tell for what."""
        whole = max(1, int((until - self.now).total_seconds()))
        while (left := (until - self.now).total_seconds()) > 0:
            self.tell(what, whole - int(left), whole)
            self.sleep(min(_LOOK_SECONDS, left))

    def sleep(self, seconds: float) -> None:
        """Wait so long. Raises Stopped when the run is to end."""
        if self.is_stopped():
            raise Stopped
        self.sandbox.clock.sleep(seconds)


def taken(results: Iterable[Job | DuelineError]) -> list[Job]:
    """Return the jobs that were scheduled. Raises NotScheduled when one was not."""
    jobs = list[Job]()
    for result in results:
        if isinstance(result, DuelineError):
            raise NotScheduled(f"a job was not scheduled: {result}") from result
        jobs.append(result)
    return jobs
