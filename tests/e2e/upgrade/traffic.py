"""Jobs of every kind, all along: scheduled by clients of both releases, and some cancelled or moved later on."""

import itertools
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from dueline import Job
from tests.e2e.early import compact, scattered
from tests.e2e.faults.books import Books
from tests.e2e.faults.callers import LATE, SOON, SOONEST_BY_THE_TABLE, Callers, Way, Wish
from tests.e2e.faults.exchange import uid_of
from tests.e2e.faults.stage import Stage

QUEUES = ("emails", "ranked")
LEVELS = {"emails": 1, "ranked": 2}
CALL_SECONDS = 1.0
MOST_JOBS_OF_A_CALL = 4
LATE_SHARE, SOON_SHARE, LARGE_SHARE, KEYED_SHARE = 0.15, 0.15, 0.08, 0.2
# Of the jobs, so many are cancelled, and as many moved; of calls, so many schedule again under a key of before.
LATER_SHARE, AGAIN_SHARE = 0.2, 0.2
LATER_LANES = 4
# Compressed still too large for a row.
LARGE_CHARACTERS = 12_000
MOST_TRIES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Keyed:
    """A job that was scheduled under an idempotency key."""

    queue: str
    wish: Wish
    id: str


@dataclass(kw_only=True, slots=True)
class Traffic:
    """Schedules in each of some ways at once; jobs by the table are due within `spread` seconds of each other.

    What is cancelled or moved is so within so many seconds, `later`. `payloads` has each by its job's UUID, and
    `second_jobs` the keys under which there was more than one job.
    """

    stage: Stage
    books: Books
    spread: float
    later: float
    seed: int
    payloads: dict[str, str] = field(default_factory=dict)
    second_jobs: list[str] = field(default_factory=list)
    keyed: list[Keyed] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _timers: list[threading.Timer] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def flowing(self, ways: list[Way]) -> Iterator[None]:
        """Let jobs be scheduled in each way, while the context lasts; what is to be done later is done at its end."""
        with ThreadPoolExecutor(LATER_LANES) as later, ThreadPoolExecutor(len(ways)) as pool:
            lanes = [pool.submit(self._flow, way, random.Random(self.seed + n), later) for n, way in enumerate(ways)]
            try:
                yield
            finally:
                self._stop.set()
            for lane in lanes:
                lane.result()
            for timer in self._timers:
                timer.join()

    def _flow(self, way: Way, chance: random.Random, later: ThreadPoolExecutor) -> None:
        callers = Callers(self.stage, chance, ways=[way])
        while not self._stop.wait(CALL_SECONDS * chance.uniform(0.5, 1.5)):
            queue = chance.choice(QUEUES)
            wishes = [self._wish(queue, chance) for _ in range(chance.randint(1, MOST_JOBS_OF_A_CALL))]
            for wish, job in zip(wishes, callers.schedule(queue, wishes), strict=True):
                self._enter(wish, job)
                self._change_later(job, chance, later)
            if self.keyed and chance.random() < AGAIN_SHARE:
                self._schedule_again(callers, chance.choice(self.keyed))

    def _wish(self, queue: str, chance: random.Random) -> Wish:
        kind, n = chance.random(), next(self._numbers)
        is_late = kind < LATE_SHARE
        table = (SOONEST_BY_THE_TABLE, SOONEST_BY_THE_TABLE + self.spread)
        ahead = LATE if is_late else SOON if kind < LATE_SHARE + SOON_SHARE else table
        large = {"text": scattered(LARGE_CHARACTERS)} if chance.random() < LARGE_SHARE else {}
        return Wish(
            due=datetime.now(UTC) + timedelta(seconds=chance.uniform(*ahead)),
            is_late=is_late,
            payload={"n": n, **large},
            priority=chance.randint(1, LEVELS[queue]),
            key=f"key {n}" if chance.random() < KEYED_SHARE and not is_late else None,
        )

    def _enter(self, wish: Wish, job: Job) -> None:
        self.payloads[uid_of(job.id)] = compact(wish.payload)
        self.books.enter(job)
        if wish.key is not None:
            self.keyed.append(Keyed(queue=job.queue, wish=wish, id=job.id))

    def _schedule_again(self, callers: Callers, of_before: Keyed) -> None:
        """Schedule a job again under its key, which may have been scheduled by another client, in another release."""
        (job,) = callers.schedule(of_before.queue, [of_before.wish])
        if job.id != of_before.id:
            self.second_jobs.append(f"{of_before.wish.key}: {of_before.id} and {job.id}")

    def _change_later(self, job: Job, chance: random.Random, later: ThreadPoolExecutor) -> None:
        share = chance.random() / LATER_SHARE
        if share < 2:
            moment = chance.choice([0.0, chance.uniform(0, self.later)])
            delay = chance.choice([chance.uniform(*LATE), SOONEST_BY_THE_TABLE + chance.uniform(0, self.spread)])
            change = (self._cancel, job.id) if share < 1 else (self._move, job.id, round(delay, 3))
            self._timers.append(threading.Timer(moment, later.submit, change))
            self._timers[-1].start()

    def _cancel(self, id: str) -> None:
        self.books.cancel(self.stage.http, id, tries=MOST_TRIES)

    def _move(self, id: str, delay: float) -> None:
        self.books.reschedule(self.stage.http, id, delay, tries=MOST_TRIES)
