"""What processes do, and what happens without one."""

from collections.abc import Sequence
from dataclasses import dataclass

from dueline.core.job import Partition
from dueline.core.queue_settings import PLANNER
from dueline.core.request import IfExists

# Times are few, so that processes meet.
DUE = (400, 400, 400, 401, 400.5, 310, 460, 5, 100, 520, 700)
MOVED_TO = (400, 400, 401, 310, 460, 0, 520, 700)
ALL = range(100)
PARTITIONS = [*(Partition(queue="emails", number=number) for number in range(3)), Partition(queue="invoices", number=0)]
PARTITIONS.append(Partition(queue=PLANNER.name, number=0))
PLANNER_PARTITION = len(PARTITIONS) - 1


@dataclass(frozen=True)
class Submit:
    """Submit jobs, due so many seconds after the beginning of the world, each under its key if there are keys.

    Each has its priority, the most urgent if there are none. They are `buffered` where the breaker is open.
    """

    due: Sequence[float]
    queue: str = "emails"
    keys: Sequence[str] = ()
    priorities: Sequence[int] = ()
    buffered: bool = False


@dataclass(frozen=True)
class Again:
    """Submit a job, by number of those that anyone tried to, again under its id: its caller heard nothing."""

    job: int
    buffered: bool = False


@dataclass(frozen=True)
class Ingest:
    """Ingest messages: of those that wait, in this order, by number; `again` ones that SQS repeats.

    `forgotten` of them SQS does not delete afterwards.
    """

    waiting: Sequence[int] = ALL
    again: Sequence[int] = ()
    forgotten: Sequence[int] = ()


@dataclass(frozen=True)
class Tick:
    """Tick a partition, by number, under a time limit that lets it wait for another's lease or not."""

    partition: int = 0
    seconds: int = 170

    @property
    def queue(self) -> str:
        return PARTITIONS[self.partition].queue


def ticks_of(queue: str) -> list[Tick]:
    """Return a tick of each partition of a queue."""
    return [Tick(number) for number, partition in enumerate(PARTITIONS) if partition.queue == queue]


@dataclass(frozen=True)
class Cancel:
    """Cancel a job, by number."""

    job: int


@dataclass(frozen=True)
class Reschedule:
    """Move a job, by number, to so many seconds after the beginning of the world."""

    job: int
    due: float


@dataclass(frozen=True)
class Named:
    """Schedule, cancel or reschedule the job of a key, under the name of the call, if it has one.

    It is due so many seconds after the beginning of the world, or after the call if that `is_delay`. A `handle` names
    it by an id in place of its key: by number, of those that callers were answered, or -1, the last. What is scheduled
    may be `uploaded` before.
    """

    key: str
    call: str
    what: str = "schedule"
    if_exists: IfExists = IfExists.KEEP
    due: float = 0.0
    is_delay: bool = False
    content: int = 1
    queue: str = "emails"
    buffered: bool = False
    handle: int | None = None
    uploaded: bool = False


@dataclass(frozen=True)
class Work:
    """Work off what is visible in a queue, as a worker does that uses the library."""

    queue: str = "emails"
    forgotten: Sequence[int] = ()


@dataclass(frozen=True)
class PutBack:
    """Send what is parked to the inbound queue."""


@dataclass(frozen=True)
class Rule:
    """A schedule's definition, by its number, which its runs carry: every so many seconds from `start` on."""

    number: int
    every: int = 60
    start: int = 0
    jitter: int = 0
    catch_up: str = "latest"
    count: int | None = None
    priority: int = 1

    def __str__(self) -> str:
        parts = [f"rule {self.number}: every {self.every} s from {self.start}"]
        parts += [f"{name} {value}" for name, value in vars(self).items() if name in ("jitter", "count") and value]
        return ", ".join([*parts, self.catch_up])


@dataclass(frozen=True)
class Alter:
    """Put, pause, resume or delete a schedule; with `is_matched`, as it is read just before.

    A caller without an answer tries `again` so many times.
    """

    schedule: str
    queue: str = "emails"
    what: str = "put"
    rule: Rule | None = None
    is_matched: bool = False
    again: int = 1


@dataclass(frozen=True)
class Plan(Ingest):
    """Plan what planning jobs say, chosen as the messages of an ingest are."""


@dataclass(frozen=True)
class Watch:
    """Watch over the schedules of a queue."""

    queue: str = "emails"


@dataclass(frozen=True)
class Guard:
    """Look whether TTL must be switched off or on."""


Action = Submit | Again | Ingest | Tick | Cancel | Reschedule | Named | Work | PutBack | Alter | Plan | Watch | Guard


@dataclass(frozen=True)
class Collect:
    """TTL collects every so-manieth row that is past it, from this one on."""

    first: int = 0
    step: int = 1


@dataclass(frozen=True)
class Vanish:
    """A queue is deleted, or there again: all of it, or the SQS queue of one priority."""

    queue: str
    gone: bool = True
    priority: int | None = None


@dataclass(frozen=True)
class Slow:
    """Each send to a queue takes so long from now on."""

    queue: str
    seconds: float


@dataclass(frozen=True)
class Throttle:
    """The table throttles the partitions of a queue from now on, or no longer; without a queue, all of them.

    Or `writes` alone, of what is only added: not the states of the partitions, which are in a table of their own.
    """

    queue: str = ""
    on: bool = True
    writes: bool = False


@dataclass(frozen=True)
class Grow:
    """A queue gets one more partition."""

    queue: str = "emails"


Event = Collect | Vanish | Slow | Throttle | Grow
