"""Callers of both kinds: over HTTP and direct, who schedule again under the same ids until they are answered."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import cycle
from uuid import UUID

from dueline import Client, Job, JobId, NewJob, Route
from dueline.errors import RETRYABLE, DuelineError
from dueline.model import instant
from dueline.model.job import Partition
from tests.e2e.faults.direct import DirectProducers
from tests.e2e.faults.stage import Stage

SOON = (0.0, 20.0)
SOONEST_BY_THE_TABLE = 25.0
# Sooner than the fence, which is 19 s ahead: whoever submits it takes the late path.
LATE = (0.5, 15.0)

Schedule = Callable[[str, Sequence[NewJob]], list[Job | DuelineError]]
# How to schedule, and whether its callers make the ids.
Way = tuple[Schedule, bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """A job to schedule: when it is due, and whether it is to go by the table though it is due soon.

    With an idempotency `key`, its caller makes no id.
    """

    due: datetime
    is_late: bool = False
    payload: object = field(default_factory=lambda: {"n": 1})
    priority: int = 1
    key: str | None = None

    @property
    def new(self) -> NewJob:
        return NewJob(payload=self.payload, at=self.due, priority=self.priority, key=self.key)


class Wishes:
    """Wishes of jobs by every route, those by the table due within `spread` seconds of each other."""

    def __init__(self, scattered: random.Random, *, spread: float) -> None:
        self._scattered = scattered
        self._spread = spread

    def some(self, jobs: int, *, further: float) -> list[Wish]:
        """Return so many wishes; those by the table are due so much further ahead."""
        return [self._one(further) for _ in range(jobs)]

    def _one(self, further: float) -> Wish:
        """Return a wish: 15 % go the late path, as many direct, 30 % by the table, the rest due in one rush."""
        kind, spread, soonest = self._scattered.random(), self._spread, SOONEST_BY_THE_TABLE + further
        now = datetime.now(UTC)
        if kind < 0.15:
            return Wish(due=now + timedelta(seconds=self._scattered.uniform(*LATE)), is_late=True)
        if kind < 0.3:
            return Wish(due=now + timedelta(seconds=self._scattered.uniform(*SOON)))
        if kind < 0.6:
            return Wish(due=now + timedelta(seconds=soonest + self._scattered.uniform(0, spread)))
        return Wish(due=datetime.fromtimestamp(((now.timestamp() + soonest) // spread + 1) * spread, UTC))


def ways_of(stage: Stage, *, is_dead: Callable[[int], bool]) -> list[Way]:
    """Return the library over HTTP, which makes most ids itself, and direct producers, which are given ids."""
    http = Client.connect(url=stage.endpoints.api)
    direct = DirectProducers(stage.deployment.name, endpoint=stage.proxy.endpoint, is_dead=is_dead)
    return [(http.schedule_many, False), (direct.schedule, True)]


class Callers:
    """Schedule in turn in each of some ways."""

    def __init__(self, stage: Stage, scattered: random.Random, *, ways: Sequence[Way]) -> None:
        self._partitions = {name: queue.partitions for name, queue in stage.deployment.queues.items()}
        self._direct_horizon = timedelta(seconds=stage.deployment.direct_horizon)
        self._scattered = scattered
        self._ways = cycle(ways)

    def schedule(self, queue: str, wishes: Sequence[Wish]) -> list[Job]:
        """Schedule jobs of a queue, the first of them alone, whatever happens on the way; return them in order."""
        schedule, is_direct = next(self._ways)
        jobs = [self._new(queue, wish, is_named=is_direct or wish.is_late) for wish in wishes]
        return [job for some in (jobs[:1], jobs[1:]) for job in until_answered(schedule, queue, some)]

    def _new(self, queue: str, wish: Wish, *, is_named: bool) -> NewJob:
        return self._named(queue, wish) if is_named and wish.key is None else wish.new

    def _named(self, queue: str, wish: Wish) -> NewJob:
        """Return a job with an id that its caller made."""
        is_soon = wish.due - datetime.now(UTC) < self._direct_horizon
        partition = Partition(queue=queue, number=self._scattered.randrange(self._partitions[queue]))
        route = Route.DIRECT if is_soon and not wish.is_late else Route.TABLE
        uid = str(UUID(int=self._scattered.getrandbits(128), version=4))
        id = JobId(partition=partition, route=route, due=instant.round_up(wish.due), uid=uid)
        return NewJob(payload=wish.payload, id=str(id), priority=wish.priority)


def until_answered(schedule: Schedule, queue: str, jobs: Sequence[NewJob]) -> list[Job]:
    """Schedule jobs, and again under the same ids or keys those of which it is not known; raise what is refused."""
    answered: dict[int, Job] = {}
    left = dict(enumerate(jobs))
    while left:
        results = dict(zip(left, schedule(queue, list(left.values())), strict=True))
        answered |= {number: result for number, result in results.items() if isinstance(result, Job)}
        left = {n: _again(left[n], result) for n, result in results.items() if isinstance(result, DuelineError)}
    return [answered[number] for number in sorted(answered)]


def _again(job: NewJob, error: DuelineError) -> NewJob:
    if not isinstance(error, RETRYABLE):
        raise error
    if error.key or job.key:
        # Where the library could not make an id, it went under a key.
        return replace(job, key=error.key or job.key)
    return replace(job, at=None, delay=None, id=error.job_id or job.id) if error.job_id or job.id else job
