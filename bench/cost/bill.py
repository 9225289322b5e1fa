"""What AWS charges: arithmetic on what was counted, in dollars a million jobs, line by line."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from bench.cost.deployed import Deployed
from bench.cost.plan import SQS_SECONDS
from bench.cost.prices import Prices
from bench.cost.step import LOG_EVENT_BYTES, Step
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
# Made by several lanes at once; the others follow one upon another.
_AT_ONCE = {"BatchWriteItem", "SendMessageBatch", "PutItem"}
# What Lambda writes at each invocation:
# https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html
_ID = "8f507cfc-xmpl-4697-b07a-ac58fc914c95"
_PLATFORM = (
    f"START RequestId: {_ID} Version: $LATEST\n",
    f"END RequestId: {_ID}\n",
    f"REPORT RequestId: {_ID}\tDuration: 15.74 ms\tBilled Duration: 16 ms\tMemory Size: 512 MB"
    "\tMax Memory Used: 96 MB\t\n",
)
# Bytes that DynamoDB keeps for each row besides it:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
ROW_OVERHEAD_BYTES = 100
# TTL deletes "within a few days": https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
TTL_DAYS = 2

WRITES, READS, SQS, FAIR = "DynamoDB writes", "DynamoDB reads", "SQS requests", "SQS fair queues"
FUNCTIONS, HTTP, LOGS = "Lambda", "HTTP API", "logs"
STORAGE, RECOVERY = "storage", "point-in-time recovery"
SCHEDULES, WATCH = "EventBridge Scheduler", "metrics and alarms"

# Dollars a million jobs, by what they are for.
Lines = Counter[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """How a table is paid: dollars a million units of each kind, and dollars a GB and month."""

    writes: float
    reads: float
    kept: float
    recovery: float

    @classmethod
    def on_demand(cls, prices: Prices) -> "Terms":
        return cls(
            writes=prices.write_units_million,
            reads=prices.read_units_million,
            kept=prices.table_gb_month,
            recovery=prices.recovery_gb_month,
        )

    @classmethod
    def provisioned(cls, prices: Prices) -> "Terms":
        """A capacity unit does one unit a second, of which the utilisation is made use of."""
        units_an_hour = 3600 * UTILISATION
        return replace(
            cls.on_demand(prices),
            writes=prices.write_capacity_hour / units_an_hour * MILLION,
            reads=prices.read_capacity_hour / units_an_hour * MILLION,
        )

    @classmethod
    def infrequent(cls, prices: Prices) -> "Terms":
        """The class for what is rarely read, on demand, and no point-in-time recovery."""
        return cls(
            writes=prices.infrequent_write_units_million,
            reads=prices.infrequent_read_units_million,
            kept=prices.infrequent_gb_month,
            recovery=0.0,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Biller:
    """Bills what was counted by what is deployed. `terms` are the jobs table's; the state table is on demand."""

    prices: Prices
    deployed: Deployed
    terms: Terms

    def requests(self, step: Step, *, jobs: float | None = None) -> Lines:
        """Bill a step's requests, which take so many jobs further, by default those of the step."""
        share, state = 1 / (jobs or step.jobs), Terms.on_demand(self.prices)
        writes = (step.writes - step.state_writes) * self.terms.writes + step.state_writes * state.writes
        reads = (step.reads - step.state_reads) * self.terms.reads + step.state_reads * state.reads
        return lines(
            {
                WRITES: writes * share,
                READS: reads * share,
                SQS: step.sent * share * self.prices.sqs_million,
                FAIR: step.grouped * share * self.prices.fair_million,
            }
        )

    def invocation(self, step: Step, *, jobs: float | None = None) -> Lines:
        """Bill an invocation of a function: its requests, its time, and what it logs."""
        share = 1 / (jobs or step.jobs)
        gb_seconds = billed_seconds(step, self.deployed.memory_mb) * self.deployed.memory_mb / 1024
        time = self.prices.lambda_million + gb_seconds * self.prices.lambda_gb_second * MILLION
        platform = platform_bytes() if self.deployed.logs_its_platform else 0
        return self.requests(step, jobs=jobs) + lines(
            {FUNCTIONS: time * share, LOGS: self.logs(step.charged_log_bytes + platform) * share}
        )

    def logs(self, charged_bytes: float) -> float:
        """Return what so many bytes of logs cost, taken in and kept, a million times."""
        a_gb = self.prices.log_gb + self.prices.log_gb_month * self.deployed.log_days / MONTH_DAYS
        return charged_bytes * MILLION / GB * a_gb

    def http(self, *, jobs: float) -> Lines:
        """Bill a request to the HTTP API with so many jobs."""
        logged = self.logs(self.deployed.access_log_bytes + LOG_EVENT_BYTES)
        return lines({HTTP: self.prices.http_million / jobs, LOGS: logged / jobs})

    def inbound(self, *, received: int, deleted: int) -> Lines:
        """Bill what Lambda itself asks of the inbound queue: receives and deletes of so many messages each."""
        requests = 1 / received + 1 / deleted
        return lines({SQS: requests * self.prices.sqs_million, FAIR: requests * self.prices.fair_million})

    def kept(self, row_bytes: int, *, days: float) -> Lines:
        """Bill a row that is kept for so many days."""
        gb_months = (row_bytes + ROW_OVERHEAD_BYTES) * MILLION / GB * days / MONTH_DAYS
        return lines({STORAGE: gb_months * self.terms.kept, RECOVERY: gb_months * self.terms.recovery})

    def watch_month(self, *, queues: int) -> float:
        """Return what metrics and alarms cost a month, with so many queues."""
        of_metrics = self.deployed.core_metrics + queues * self.deployed.queue_metrics
        of_alarms = self.deployed.core_alarms + queues * self.deployed.queue_alarms
        return of_metrics * self.prices.metric_month + of_alarms * self.prices.alarm_month


def lines(amounts: Mapping[str, float]) -> Lines:
    """Return lines of a bill, which can be added; those of nothing are left out."""
    told: Lines = Counter()
    for name, amount in amounts.items():
        if amount:
            told[name] = amount  # type: ignore[assignment]
    return told


def billed_seconds(step: Step, memory_mb: int) -> float:
    """Return how long an invocation takes, in whole milliseconds: CPU time at its share of a processor, and waiting."""
    seconds = step.cpu_seconds * PROCESSOR_MB / memory_mb + waited_seconds(step.calls)
    return ceil(round(seconds * 1000, 6)) / 1000


def waited_seconds(calls: Mapping[str, int]) -> float:
    """Return how long requests are waited for.

    >>> round(waited_seconds({"UpdateItem": 2, "SendMessageBatch": 11}), 3)
    0.06
    """
    rounds = {operation: ceil(times / LANES) if operation in _AT_ONCE else times for operation, times in calls.items()}
    return sum(
        times * (SQS_SECONDS if "Message" in operation else DYNAMODB_SECONDS) for operation, times in rounds.items()
    )


def platform_bytes() -> int:
    """Return the bytes that CloudWatch charges of what Lambda itself writes at each invocation."""
    return sum(len(line) + LOG_EVENT_BYTES for line in _PLATFORM)
