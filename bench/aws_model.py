"""The parameters of a simulated AWS, with their units and sources, and of what Dueline deploys in it by default.

What is said to be an assumption is one: AWS publishes no figure for it.
"""

import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from dueline.aws.clients import LANES

# How many standard deviations above the median the 99th percentile of a normal distribution lies.
_P99_DEVIATIONS = 2.3263478740408408


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a request takes, in seconds: lognormal, by its median and its 99th percentile."""

    p50: float
    p99: float

    def draw(self, random: Random) -> float:
        deviation = math.log(self.p99 / self.p50) / _P99_DEVIATIONS
        return self.p50 * math.exp(deviation * random.gauss(0, 1))

    def slowed(self, times: float) -> "Latency":
        return Latency(self.p50 * times, self.p99 * times)


@dataclass(frozen=True, kw_only=True, slots=True)
class Aws:
    """AWS and what is deployed in it, `times` as slow as it is. Units are a second's, times in seconds."""

    # The limits of a key hold for reads and for writes apart, and no unused capacity lifts them:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-key-range-limit-exceeded-mitigation.html
    # https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals
    writes_per_key: float = 1000
    reads_per_key: float = 3000
    # What is kept of a second that was not used: an assumption, the least that is more than an instant.
    burst_seconds: float = 1
    page_bytes: int = 1024 * 1024
    # "Single-digit milliseconds" is all that AWS says, of single items; the rest are assumptions.
    write: Latency = Latency(0.008, 0.040)
    update: Latency = Latency(0.005, 0.025)
    read: Latency = Latency(0.005, 0.025)
    page: Latency = Latency(0.040, 0.150)
    # Of a message's whole way to a Lambda function, so rather too long for a send, measured in 2022:
    # https://bitesizedserverless.com/bite/serverless-messaging-latency-compared/
    send: Latency = Latency(0.016, 0.105)
    # Memory decides which share of a vCPU there is: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
    vcpu: float = 512 / 1769
    # Seconds of a whole vCPU a job (assumptions), and for a request of the API, about what `bench run cost` counts.
    tick_cpu: float = 0.0001
    ingest_cpu: float = 0.0001
    api_cpu: float = 0.004
    # The pollers of an event source: five at first, and 300 more a minute.
    # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    first_pollers: int = 5
    pollers_a_minute: float = 300
    # Assumptions: of an asynchronous call, and of a cold start of Python with boto3 and Powertools.
    invocation: Latency = Latency(0.050, 0.250)
    cold_start: Latency = Latency(0.900, 2.000)
    # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
    retry_seconds: float = 60
    # "60-second precision": https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    # At least once, how often is an assumption: https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
    period: float = 60
    doubles: float = 0.01
    # What Dueline deploys: dueline/functions, and tick.py and ingest.py of dueline/cdk/constructs.
    memory_mb: int = 512
    ingest_functions: int = 10
    batch: int = 500
    window: float = 1
    ingest_timeout: float = 30
    ingest_longest_request: float = 5
    visibility_timeout: float = 181
    api_longest_request: float = 5
    api_sends_for: float = 10
    tick_timeout: float = 300
    tick_attempts: int = 2
    lookahead: float = 240
    lease: float = 30
    lanes: int = LANES
    times: float = 1

    def slowed(self, times: float) -> "Aws":
        """Return an AWS in which a partition does the same with a fraction of the jobs.

        Requests and CPU take so many times as long, limits are so many times lower. Given as much fewer jobs, a
        partition is as busy as before, and an hour is an hour.
        """
        slower: dict[str, Any] = {
            name: getattr(self, name) * times
            for name in ("burst_seconds", "tick_cpu", "ingest_cpu", "api_cpu", "times")
        }
        for name in ("write", "update", "read", "page", "send"):
            slower[name] = getattr(self, name).slowed(times)
        limits = {name: getattr(self, name) / times for name in ("writes_per_key", "reads_per_key")}
        return replace(self, **slower, **limits, batch=max(2, round(self.batch / times)))
