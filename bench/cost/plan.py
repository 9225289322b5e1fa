"""What is counted: in which shapes, at which rates of jobs a second, and how often."""

from dataclasses import dataclass, replace
from math import ceil

RATES = (1, 100, 10_000, 100_000)
HIGH = 10_000
# How many jobs a second a partition is to carry: a rule of thumb.
JOBS_PER_PARTITION = 500
TICK_SECONDS = 60
CALL_JOBS = 100
# Dynein's protocol, and the same with whatever it allows done by ten or 25.
CODED, BATCHED = "dynein", "dynein batched"
# What an event source mapping reads with at least; `max_concurrency` is set, so that it does not go lower:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLLERS = 5
# Mean time of one SQS request as the documentation has it:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-throughput-horizontal-scaling-and-batching.html
SQS_SECONDS = 0.020
# Callers that schedule one by one, at once, over one client, and how long these wait for each other.
CALLERS, LINGER_SECONDS = 8, 0.005
LINGERING = "lingering"
# How many messages a receive brings at a high rate.
RECEIVED = 10
_POLLED = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """A batch that ingest is given: so many jobs of so many partitions."""

    jobs: int
    partitions: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Jobs of one queue that come evenly, so many a second; `batch_size` and `window` are those of the event source."""

    rate: int
    batch_size: int = 500
    window: float = 1.0

    @property
    def partitions(self) -> int:
        """
        >>> [Load(rate=rate).partitions for rate in RATES]
        [1, 1, 20, 200]
        """
        return ceil(self.rate / JOBS_PER_PARTITION)

    @property
    def ingested(self) -> Batch:
        """What comes to each of the pollers within the window, up to a full batch, where all jobs go by the buffer.

        >>> [Load(rate=rate).ingested.jobs for rate in RATES]
        [1, 20, 500, 500]
        """
        jobs = min(self.batch_size, max(1, int(self.rate * self.window / POLLERS)))
        return Batch(jobs=jobs, partitions=min(jobs, self.partitions))

    @property
    def ticked(self) -> int:
        """Jobs that a tick finds.

        >>> [Load(rate=rate).ticked for rate in RATES]
        [60, 6000, 30000, 30000]
        """
        return self.rate * TICK_SECONDS // self.partitions

    @property
    def polled(self) -> int:
        """Jobs that Dynein finds when it polls a partition, once a second or at once after a full page.

        >>> [Load(rate=rate).polled for rate in RATES]
        [1, 100, 100, 100]
        """
        return min(_POLLED, max(1, self.rate // self.partitions))


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What to count. A tick with more jobs than `most_ticked` is counted with so many, and is no dearer a job."""

    rounds: int
    most_ticked: int
    rates: tuple[int, ...] = RATES

    def at(self, rate: int) -> "Plan":
        return replace(self, rates=(rate,))

    @property
    def ticks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.ticked(Load(rate=rate)) for rate in self.rates))

    @property
    def polls(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(Load(rate=rate).polled for rate in self.rates))

    def ticked(self, load: Load) -> int:
        return min(self.most_ticked, load.ticked)


QUICK = Plan(rounds=1, most_ticked=600)
FULL = Plan(rounds=2, most_ticked=1200)


def named(kind: str, *told: object) -> str:
    """Return the name of a step.

    >>> named("tick", 60, "1 KB")
    'tick|60|1 KB'
    """
    return "|".join([kind, *map(str, told)])
