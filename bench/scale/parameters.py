"""What is taken for granted of AWS: every parameter of the model, with its unit and its source.

What is said to be an assumption is one: AWS publishes no figure for it.
"""

import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from dueline.aws.clients import LANES

MOST_BATCH = 500
# How many standard deviations above the median the 99th percentile of a normal distribution lies.
_P99_DEVIATIONS = 2.3263478740408408


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """How long a request takes, in seconds: lognormal, told by its median and its 99th percentile."""

    p50: float
    p99: float

    def __post_init__(self) -> None:
        if not 0 < self.p50 <= self.p99:
            raise ValueError(f"p50 is {self.p50}, p99 {self.p99}: both must be over 0, and p99 at least p50")

    def draw(self, random: Random) -> float:
        deviation = math.log(self.p99 / self.p50) / _P99_DEVIATIONS
        return self.p50 * math.exp(deviation * random.gauss(0, 1))

    def slowed(self, by: float) -> "Latency":
        return Latency(p50=self.p50 * by, p99=self.p99 * by)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ramp:
    """A concurrency that begins at `first`, grows by `a_minute`, evenly, and ends at `most`."""

    first: int
    a_minute: float
    most: int

    def starts(self, count: int) -> list[float]:
        """Return in how many seconds from the beginning each of up to `count` is there.

        >>> Ramp(first=2, a_minute=60, most=4).starts(9)
        [0.0, 0.0, 1.0, 2.0]
        """
        wait = 60 / self.a_minute
        return [max(0.0, (number + 1 - self.first) * wait) for number in range(min(count, self.most))]


@dataclass(frozen=True, kw_only=True, slots=True)
class DynamoDb:
    """A table on demand. Units are a second's, latencies in seconds.

    The limits of a key hold for reads and for writes apart, and no unused capacity lifts them:
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-key-range-limit-exceeded-mitigation.html
    https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals
    """

    writes_per_key: float = 1000
    reads_per_key: float = 3000
    # What is kept of a second that was not used: an assumption, the least that tells a second from an instant.
    burst_seconds: float = 1
    # Into how many physical partitions a hot key was split. Rows that arrive in the order of their sort keys: one.
    # https://aws.amazon.com/blogs/database/part-3-scaling-dynamodb-how-partitions-hot-keys-and-split-for-heat-impact-performance/
    splits: int = 1
    page_bytes: int = 1024 * 1024
    # "Single-digit milliseconds" is all that AWS says, of single items; the rest are assumptions.
    write: Latency = Latency(p50=0.008, p99=0.040)
    update: Latency = Latency(p50=0.005, p99=0.025)
    read: Latency = Latency(p50=0.005, p99=0.025)
    page: Latency = Latency(p50=0.040, p99=0.150)
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
    new_table_writes: float = 4000
    doubling_minutes: float = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Sqs:
    """Standard queues, which take any number of requests.

    The latency is of a message's whole way to a Lambda function, so rather too long for a send, measured in 2022:
    https://bitesizedserverless.com/bite/serverless-messaging-latency-compared/
    """

    send: Latency = Latency(p50=0.016, p99=0.105)


@dataclass(frozen=True, kw_only=True, slots=True)
class Functions:
    """Lambda. CPU is in seconds of a whole vCPU a job; memory decides which share of one there is.

    Shares: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
    Pollers: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    """

    memory_mb: int = 512
    vcpu_mb: int = 1769
    tick_cpu: float = 0.0001
    ingest_cpu: float = 0.0001
    # A request of the API, besides its rows: about what `bench run cost` counts.
    api_cpu: float = 0.004
    pollers: Ramp = Ramp(first=5, a_minute=300, most=1250)
    # Assumptions: of an asynchronous call, and of a cold start of Python with boto3 and Powertools.
    invocation: Latency = Latency(p50=0.050, p99=0.250)
    cold_start: Latency = Latency(p50=0.900, p99=2.000)
    # Lambda tries an asynchronous call again after a minute:
    # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
    retry_seconds: float = 60

    @property
    def vcpu(self) -> float:
        return min(1.0, self.memory_mb / self.vcpu_mb)

    def slowed(self, times: float) -> "Functions":
        of_jobs = {name: getattr(self, name) * times for name in ("tick_cpu", "ingest_cpu", "api_cpu")}
        return replace(self, **of_jobs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduler:
    """EventBridge Scheduler: each firing at any second of its minute, and now and then twice.

    "60-second precision": https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    At least once, how often is an assumption: https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
    """

    period: float = 60
    doubles: float = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployed:
    """What Dueline deploys by default, in seconds: functions/, and tick.py and ingest.py of infra/constructs/."""

    ingest_functions: int = 10
    batch: int = MOST_BATCH
    window: float = 1
    ingest_timeout: float = 30
    ingest_longest_request: float = 4
    visibility_timeout: float = 181
    api_longest_request: float = 5
    api_sends_for: float = 10
    tick_timeout: float = 300
    tick_attempts: int = 2
    lookahead: float = 240
    lease: float = 30
    lanes: int = LANES


@dataclass(frozen=True, kw_only=True, slots=True)
class Aws:
    """AWS and what is deployed in it, `times` as slow as it is."""

    dynamodb: DynamoDb = DynamoDb()
    sqs: Sqs = Sqs()
    functions: Functions = Functions()
    scheduler: Scheduler = Scheduler()
    deployed: Deployed = Deployed()
    times: float = 1

    def slowed(self, times: float) -> "Aws":
        """Return an AWS in which a partition does the same with a fraction of the jobs.

        Requests and CPU take so many times as long, limits are so many times lower. Given as much fewer jobs, a
        partition is as busy as before, and an hour is an hour.
        """
        dynamodb = self.dynamodb
        return replace(
            self,
            dynamodb=replace(
                dynamodb,
                writes_per_key=dynamodb.writes_per_key / times,
                reads_per_key=dynamodb.reads_per_key / times,
                burst_seconds=dynamodb.burst_seconds * times,
                **_slower(dynamodb, times, "write", "update", "read", "page"),
            ),
            sqs=replace(self.sqs, **_slower(self.sqs, times, "send")),
            functions=self.functions.slowed(times),
            deployed=replace(self.deployed, batch=max(2, round(self.deployed.batch / times))),
            times=self.times * times,
        )


def _slower(service: Any, times: float, *names: str) -> dict[str, Any]:
    return {name: getattr(service, name).slowed(times) for name in names}
