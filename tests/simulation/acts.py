"""What processes do, and what happens without one."""

from collections.abc import Sequence
from dataclasses import dataclass

from dueline.model.job import Partition

ALL = range(100)
PARTITIONS = [*(Partition(queue="emails", number=number) for number in range(3)), Partition(queue="invoices", number=0)]


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
class Work:
    """Work off what is visible in a queue, as a worker does that uses the library."""

    queue: str = "emails"
    forgotten: Sequence[int] = ()


@dataclass(frozen=True)
class PutBack:
    """Send what is parked to the inbound queue."""


Act = Submit | Again | Ingest | Tick | Cancel | Reschedule | Work | PutBack


def queue_of(act: Act) -> str | None:
    """Return the queue that an act concerns, if it is only one, and known."""
    match act:
        case Submit(queue=queue) | Work(queue=queue):
            return queue
        case Tick(partition=number):
            return PARTITIONS[number].queue
    return None


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
