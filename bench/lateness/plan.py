"""What is due when, the same for all that are measured, and as jobs of the protocols."""

import random
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.dynein import cut
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.message import BATCH_MESSAGES, Message
from dueline.ports import Queue

PLAIN = ("mails", "hooks", "reports")
EXACT = "exact"
LANES = (*PLAIN, EXACT)
STEADY, RUSH, MISSED, KILLED = "steady", "all at :00", "missed tick", "killed tick"
RATE = 20
CANCELLED_SHARE = 0.05
_RETENTION = timedelta(days=7)
_SENDERS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """A job to schedule: in which lane, how many seconds after the beginning it is due, and whether all at once."""

    number: int
    lane: str
    after: float
    rush: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """A steady flow of `RATE` jobs a second from `first` on for so many seconds, and so many jobs all at :00 later."""

    first: float
    steady: float
    rush: int

    @property
    def rush_at(self) -> float:
        """The seconds from the beginning to the jobs that are due all at once; the flow is over by then."""
        return float(round(self.first + self.steady + 3))

    def wishes(self, *, seed: int = 1) -> list[Wish]:
        """Return the jobs, in no order, the same for a seed."""
        chance = random.Random(seed)
        flow = [self.first + chance.random() * self.steady for _ in range(round(RATE * self.steady))]
        dues = [(round(after, 3), False) for after in flow] + [(self.rush_at, True)] * self.rush
        return [
            Wish(number=number, lane=LANES[number % len(LANES)], after=after, rush=rush)
            for number, (after, rush) in enumerate(dues)
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduled:
    """The jobs with their beginning: an instant on a whole second, in seconds since 1970."""

    begin: int
    wishes: tuple[Wish, ...]

    def due(self, wish: Wish) -> datetime:
        """Return when a job is due, to the millisecond."""
        return datetime.fromtimestamp(self.begin + round(wish.after * 1000) / 1000, UTC)

    @staticmethod
    def now() -> datetime:
        return datetime.now(UTC)

    @property
    def dues(self) -> dict[int, float]:
        """When each job is due, in seconds since 1970."""
        return {wish.number: self.due(wish).timestamp() for wish in self.wishes}

    @property
    def last(self) -> float:
        return max(self.dues.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticks:
    """When ticks fire, in seconds from the beginning, which firing is missed, and which one of a queue is killed."""

    period: float
    lookahead: float
    missed: int
    killed: int
    killed_lane: str = PLAIN[0]

    def handed_over_by(self, firing: int) -> tuple[float, float]:
        """Return from when, exclusive, to when the jobs are due which a firing is the first to look ahead to."""
        to = firing * self.period + self.lookahead
        return to - self.period, to

    def scenario(self, wish: Wish) -> str:
        """Return what befalls a job."""
        if wish.rush:
            return RUSH
        if self._is_of(self.missed, wish):
            return MISSED
        if wish.lane == self.killed_lane and self._is_of(self.killed, wish):
            return KILLED
        return STEADY

    def _is_of(self, firing: int, wish: Wish) -> bool:
        after, to = self.handed_over_by(firing)
        return firing > 0 and after < wish.after <= to


def job_of(wish: Wish, scheduled: Scheduled) -> Job:
    """Return the job of a wish, by the table's route; its payload is its number."""
    due, uid = scheduled.due(wish), str(uuid.UUID(int=random.Random(wish.number).getrandbits(128), version=4))
    id = JobId(partition=Partition(queue=wish.lane, number=0), route=Route.TABLE, due=due, uid=uid)
    return Job(id=id, payload=str(wish.number), expires=due + _RETENTION)


def send(jobs: Sequence[Job], queue: Queue) -> None:
    """Send jobs to a queue in tens, several at once."""

    def send_ten(batch: list[Job]) -> None:
        if refused := queue.send([Message.of(job) for job in batch]):
            raise RuntimeError(f"not sent: {refused[0].reason}")

    with ThreadPoolExecutor(_SENDERS) as pool:
        list(pool.map(send_ten, cut(jobs, BATCH_MESSAGES)))
