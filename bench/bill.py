"""What AWS charges: arithmetic on what was counted, in dollars a million jobs, line by line, by bench/prices.json."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.counted import LOG_EVENT_BYTES, Step
from bench.deployed import Deployed
from dueline.aws.clients import LANES

MILLION, GB = 1_000_000, 1_000_000_000
MONTH_DAYS, MONTH_HOURS = 365 / 12, 730
# What provisioned capacity is used to, on average: what AWS's own auto scaling aims at by default.
UTILISATION = 0.70
# At so many MB a function has one processor, and in proportion:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
PROCESSOR_MB = 1769
# "Single-digit milliseconds", rounded up: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html
DYNAMODB_SECONDS = 0.010
# Mean time of one SQS request as the documentation has it:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-throughput-horizontal-scaling-and-batching.html
SQS_SECONDS = 0.020
# Made by several lanes at once; the others follow one upon another.
_AT_ONCE = {"BatchWriteItem", "SendMessageBatch", "PutItem"}
# What Lambda writes at each invocation: https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html
_ID = "8f507cfc-xmpl-4697-b07a-ac58fc914c95"
_PLATFORM = (
    f"START RequestId: {_ID} Version: $LATEST\n",
    f"END RequestId: {_ID}\n",
    f"REPORT RequestId: {_ID}\tDuration: 15.74 ms\tBilled Duration: 16 ms\tMemory Size: 512 MB"
    "\tMax Memory Used: 96 MB\t\n",
)
PLATFORM_BYTES = sum(len(line) + LOG_EVENT_BYTES for line in _PLATFORM)
# Bytes that DynamoDB keeps for each row besides it:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
ROW_OVERHEAD_BYTES = 100
# TTL deletes "within a few days": https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
TTL_DAYS = 2
# What an event source mapping reads with at least; one that finds nothing receives again after SQS's longest wait.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLLERS, LONG_POLL_SECONDS = 5, 20

WRITES, READS, SQS, FAIR = "DynamoDB writes", "DynamoDB reads", "SQS requests", "SQS fair queues"
FUNCTIONS, HTTP, LOGS = "Lambda", "HTTP API", "logs"
STORAGE, RECOVERY = "storage", "point-in-time recovery"
SCHEDULES, WATCH = "EventBridge Scheduler", "metrics and alarms"

# Dollars a million jobs, by what they are for.
Lines = Counter[str]


def written_prices() -> dict[str, dict[str, Any]]:
    """Return every price as bench/prices.json has it, with its unit, its source and the day when it was read."""
    prices: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("prices.json").read_text())["prices"]
    return prices


# Dollars, by the names that the file has.
PRICES: Any = SimpleNamespace(**{name: price["value"] for name, price in written_prices().items()})


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """How the jobs table is paid: dollars a million units of each kind, and dollars a GB and month."""

    writes: float
    reads: float
    kept: float
    recovery: float


ON_DEMAND = Terms(
    writes=PRICES.write_units_million,
    reads=PRICES.read_units_million,
    kept=PRICES.table_gb_month,
    recovery=PRICES.recovery_gb_month,
)
# A capacity unit does one unit a second.
PROVISIONED = replace(
    ON_DEMAND,
    writes=PRICES.write_capacity_hour / (3600 * UTILISATION) * MILLION,
    reads=PRICES.read_capacity_hour / (3600 * UTILISATION) * MILLION,
)
# The class for what is rarely read, on demand, and no point-in-time recovery.
INFREQUENT = Terms(
    writes=PRICES.infrequent_write_units_million,
    reads=PRICES.infrequent_read_units_million,
    kept=PRICES.infrequent_gb_month,
    recovery=0.0,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Biller:
    """Bills what was counted by what is deployed. `terms` are the jobs table's; the state table is on demand."""

    deployed: Deployed
    terms: Terms = ON_DEMAND

    def requests(self, step: Step, *, jobs: float | None = None) -> Lines:
        """Bill a step's requests, which take so many jobs further, by default those of the step."""
        share = 1 / (jobs or step.jobs)
        writes = (step.writes - step.state_writes) * self.terms.writes + step.state_writes * ON_DEMAND.writes
        reads = (step.reads - step.state_reads) * self.terms.reads + step.state_reads * ON_DEMAND.reads
        sent, grouped = step.sent * PRICES.sqs_million, step.grouped * PRICES.fair_million
        return lines({WRITES: writes * share, READS: reads * share, SQS: sent * share, FAIR: grouped * share})

    def invocation(self, step: Step, *, jobs: float | None = None) -> Lines:
        """Bill an invocation of a function: its requests, its time, and what it logs."""
        share = 1 / (jobs or step.jobs)
        gb_seconds = billed_seconds(step, self.deployed.memory_mb) * self.deployed.memory_mb / 1024
        time = PRICES.lambda_million + gb_seconds * PRICES.lambda_gb_second * MILLION
        logged = step.charged_log_bytes + (PLATFORM_BYTES if self.deployed.logs_its_platform else 0)
        return self.requests(step, jobs=jobs) + lines({FUNCTIONS: time * share, LOGS: self.logs(logged) * share})

    def logs(self, charged_bytes: float) -> float:
        """Return what so many bytes of logs cost, taken in and kept, a million times."""
        a_gb = PRICES.log_gb + PRICES.log_gb_month * self.deployed.log_days / MONTH_DAYS
        return float(charged_bytes * MILLION / GB * a_gb)

    def http(self, *, jobs: float) -> Lines:
        """Bill a request to the HTTP API with so many jobs."""
        logged = self.logs(self.deployed.access_log_bytes + LOG_EVENT_BYTES)
        return lines({HTTP: PRICES.http_million / jobs, LOGS: logged / jobs})

    def inbound(self, *, received: int, deleted: int) -> Lines:
        """Bill Lambda's own requests to an inbound queue: receives and deletes of so many messages each."""
        requests = 1 / received + 1 / deleted
        return lines({SQS: requests * PRICES.sqs_million, FAIR: requests * PRICES.fair_million})

    def kept(self, row_bytes: int, *, days: float) -> Lines:
        """Bill a row that is kept for so many days."""
        gb_months = (row_bytes + ROW_OVERHEAD_BYTES) * MILLION / GB * days / MONTH_DAYS
        return lines({STORAGE: gb_months * self.terms.kept, RECOVERY: gb_months * self.terms.recovery})

    def watch_month(self, *, queues: int) -> float:
        """Return what metrics and alarms cost a month, with so many queues."""
        metrics = self.deployed.core_metrics + queues * self.deployed.queue_metrics
        alarms = self.deployed.core_alarms + queues * self.deployed.queue_alarms
        return float(metrics * PRICES.metric_month + alarms * PRICES.alarm_month)


def lines(amounts: Mapping[str, float]) -> Lines:
    """Return lines of a bill, which can be added; those of nothing are left out."""
    bill: Any = Counter()
    bill.update({name: amount for name, amount in amounts.items() if amount})
    return bill  # type: ignore[no-any-return]


def total(bill: Mapping[str, float]) -> float:
    return sum(bill.values())


def billed_seconds(step: Step, memory_mb: int) -> float:
    """Return how long an invocation takes, in whole milliseconds: CPU time at its share of a processor, and waiting."""
    seconds = step.cpu_seconds * PROCESSOR_MB / memory_mb + waited_seconds(step.calls)
    return ceil(round(seconds * 1000, 6)) / 1000


def waited_seconds(calls: Mapping[str, int]) -> float:
    """Return how long a function waits for its requests.

    >>> round(waited_seconds({"UpdateItem": 2, "SendMessageBatch": 11}), 3)
    0.06
    """
    rounds = {operation: ceil(times / LANES) if operation in _AT_ONCE else times for operation, times in calls.items()}
    seconds = {operation: SQS_SECONDS if "Message" in operation else DYNAMODB_SECONDS for operation in rounds}
    return sum(times * seconds[operation] for operation, times in rounds.items())


def polls_month() -> float:
    """Return what Lambda's receives from an empty queue cost in a month."""
    return POLLERS * MONTH_HOURS * 3600 / LONG_POLL_SECONDS * float(PRICES.sqs_million) / MILLION
