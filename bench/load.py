"""What is due when, the same load for all contenders of lateness; and the ledger of what landed."""

import os
import random
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench.harness import chunks
from dueline.core.job import Partition, StoredJob
from dueline.core.message import BATCH_MESSAGES, Message
from dueline.core.ports import Queue
from tests.acceptance.inbox import percentile
from tests.builders import a_job

PLAIN = ("mails", "hooks", "reports")
EXACT = "exact"
QUEUES = (*PLAIN, EXACT)
FLOW, RUSH = "flow", "all at :00"
RATE = 20
ON_TIME_SECONDS = 60
# What has not landed by then is lost; what comes twice comes soon after.
LATEST_SECONDS, REPEAT_SECONDS = 60.0, 2.0
RECORD = "BENCH_RECORD"
_SENDERS = 4


class Due(NamedTuple):
    """A job of the load: its queue, how many seconds after the beginning it is due, and whether with many others."""

    number: int
    queue: str
    after: float
    rush: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """A flow of `RATE` jobs a second from `first` on for `steady` seconds, and `rush` jobs all at :00 later."""

    first: float
    steady: float
    rush: int

    def dues(self, *, seed: int = 1) -> tuple[Due, ...]:
        chance = random.Random(seed)
        flow = [self.first + chance.random() * self.steady for _ in range(round(RATE * self.steady))]
        rush_at = float(round(self.first + self.steady + 3))
        dues = [(round(after, 3), False) for after in flow] + [(rush_at, True)] * self.rush
        return tuple(Due(number, QUEUES[number % len(QUEUES)], *due) for number, due in enumerate(dues))


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """Jobs with their beginning: an instant on a whole second, in seconds since 1970."""

    begin: int
    jobs: tuple[Due, ...]

    def due(self, job: Due) -> datetime:
        return datetime.fromtimestamp(self.begin + round(job.after * 1000) / 1000, UTC)

    @property
    def dues(self) -> dict[int, float]:
        return {job.number: self.due(job).timestamp() for job in self.jobs}

    def job(self, job: Due) -> StoredJob:
        """Return a job of the table's route, whose payload is its number."""
        uid = str(uuid.UUID(int=random.Random(job.number).getrandbits(128), version=4))
        return a_job(
            partition=Partition(queue=job.queue, number=0), due=self.due(job), uid=uid, payload=str(job.number)
        )


def send(jobs: Sequence[StoredJob], queue: Queue) -> None:
    """Send jobs to a queue in tens, several at once."""

    def send_ten(batch: list[StoredJob]) -> None:
        if refused := queue.send([Message.of(job) for job in batch]):
            raise RuntimeError(f"not sent: {refused[0].reason}")

    with ThreadPoolExecutor(_SENDERS) as pool:
        list(pool.map(send_ten, chunks(jobs, BATCH_MESSAGES)))


def write_landed(landed: Iterable[tuple[int, float]]) -> None:
    """Add jobs to the record that the environment names: a line a job, whole or not at all."""
    lines = "".join(f"{number} {at:.6f}\n" for number, at in landed)
    record = os.open(os.environ[RECORD], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(record, lines.encode())
    finally:
        os.close(record)


def land(number: int) -> None:
    write_landed([(number, time.time())])


def read_landed(record: Path) -> list[tuple[int, float]]:
    lines = record.read_text().splitlines() if record.exists() else []
    return [(int(number), float(at)) for number, at in map(str.split, lines)]


def sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))


def wait_for_the_last(schedule: Schedule, record: Path, *, but: Collection[int] = ()) -> "Ledger":
    """Wait until all have landed `but` those, for 60 s after the last is due at most; return the ledger."""
    last = max(schedule.dues.values())
    sleep_until(last)
    expected = schedule.dues.keys() - set(but)
    while time.time() < last + LATEST_SECONDS and expected - {number for number, _ in read_landed(record)}:
        time.sleep(0.5)
    time.sleep(REPEAT_SECONDS)
    return Ledger(dues=schedule.dues, landed=read_landed(record))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """What was due when, and what landed, both in seconds; what was cancelled, and where that was not promised."""

    dues: Mapping[int, float]
    landed: Sequence[tuple[int, float]]
    cancelled: Collection[int] = field(default_factory=frozenset)
    maybe_cancelled: Collection[int] = field(default_factory=frozenset)

    def of(self, numbers: Collection[int]) -> "Ledger":
        """Return the ledger of some of the jobs."""
        some = frozenset(numbers)
        return Ledger(
            dues={number: due for number, due in self.dues.items() if number in some},
            landed=[each for each in self.landed if each[0] in some],
            cancelled=some & frozenset(self.cancelled),
            maybe_cancelled=some & frozenset(self.maybe_cancelled),
        )

    def by_kind(self, jobs: Iterable[Due]) -> dict[str, dict[str, Any]]:
        """Return the summaries of the flow and of the rush."""
        numbers: dict[str, list[int]] = {}
        for job in jobs:
            numbers.setdefault(RUSH if job.rush else FLOW, []).append(job.number)
        return {kind: self.of(some).summary() for kind, some in numbers.items()}

    @property
    def expected(self) -> set[int]:
        return self.dues.keys() - set(self.cancelled) - set(self.maybe_cancelled)

    @property
    def times(self) -> Counter[int]:
        return Counter(number for number, _ in self.landed if number in self.dues)

    @property
    def lost(self) -> set[int]:
        return self.expected - self.times.keys()

    @property
    def repeated(self) -> int:
        return sum(times - 1 for times in self.times.values())

    def lateness(self) -> dict[int, float]:
        """Return how late each job first landed, in seconds."""
        first: dict[int, float] = {}
        for number, at in self.landed:
            if number in self.dues:
                # A microsecond of grace: instants are whole ones.
                late = round(at - self.dues[number], 6)
                first[number] = min(late, first.get(number, late))
        return first

    def summary(self) -> dict[str, Any]:
        """Return the counts, and the lateness in seconds."""
        late = self.lateness()
        ordered = sorted(late.values())
        percents = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
        expected = self.expected
        return {
            "jobs": len(expected),
            **{name: round(percentile(ordered, percent), 4) for name, percent in percents.items()},
            "early": sum(each < 0 for each in ordered),
            "lost": len(self.lost),
            "repeated": self.repeated,
            "after a promised cancel": len(self.times.keys() & set(self.cancelled)),
            "on time": sum(0 <= late.get(each, -1) <= ON_TIME_SECONDS for each in expected) / max(1, len(expected)),
        }
