"""What AWS charges for what was counted: dollars a million jobs, by bench/prices.json."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import yaml

from bench.aws_model import Aws
from bench.counted import LOG_EVENT_BYTES, Step
from bench.harness import Figures
from bench.payloads import QUEUE, SIZES, USUAL, Size
from dueline.aws.clients import LANES
from dueline.config import metrics
from dueline.core.dispatch import SWEEP_SECONDS
from dueline.core.job import MAX_RETENTION, Route
from dueline.core.message import BATCH_MESSAGES
from dueline.core.rows import CANCELLATION_OUTLIVES_RETENTION
from dueline.core.tick import SWEPT_JOBS
from local.template import synthesize
from tests.builders import RETENTION

MILLION, GB = 1_000_000, 1_000_000_000
MONTH_DAYS, MONTH_HOURS = 365 / 12, 730
# "Single-digit milliseconds", rounded up: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html
DYNAMODB_SECONDS = 0.010
# Mean time of one SQS request as the documentation has it:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-throughput-horizontal-scaling-and-batching.html
SQS_SECONDS = 0.020
# What an event source mapping reads with at least; one that finds nothing receives again after SQS's longest wait.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLLERS, LONG_POLL_SECONDS = 5, 20
# At so many MB a function has one processor, and in proportion:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
PROCESSOR_MB = 1769
# Made by several lanes at once; the others follow one upon another.
_AT_ONCE = {"BatchWriteItem", "SendMessageBatch", "PutItem"}
# Bytes that DynamoDB keeps for each row besides it:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
ROW_OVERHEAD_BYTES = 100
# TTL deletes "within a few days": https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
TTL_DAYS = 2


def written_prices() -> dict[str, dict[str, Any]]:
    """Return every price as bench/prices.json has it, with its unit, its source and the day when it was read."""
    prices: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("prices.json").read_text())["prices"]
    return prices


# Dollars, by the names that the file has.
PRICES: Any = SimpleNamespace(**{name: price["value"] for name, price in written_prices().items()})

# As API Gateway would fill in the access log's format.
_FILLED_IN = {
    "requestId": "JKJaXmPLvHcESHA=",
    # Of a role, with the name of the session: here an instance's.
    "identity.caller": "AROAXMPLXMPLXMPLXMPLX:i-0123456789abcdef0",
    "httpMethod": "POST",
    "path": f"/queues/{QUEUE}/jobs",
    "status": "201",
    "integrationErrorMessage": "-",
}
_VARIABLE = re.compile(r"\$context\.([\w.]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployed:
    """What the templates of a deployment with one queue say.

    `queue_alarms` and `queue_metrics` come again with each queue that has `metrics: queue`, the others with the
    deployment; `idle_metrics` are those that are reported without a job. An alarm on a share of two metrics costs as
    two alarms.
    """

    memory_mb: int
    queue_alarms: int
    core_alarms: int
    queue_metrics: int
    core_metrics: int
    idle_metrics: int
    access_log_bytes: int
    log_days: int


def deployed(scratch: Path) -> Deployed:
    """Synthesize a deployment with one queue that has metrics of its own, and return what it is made of."""
    queues = scratch / "queues.yaml"
    queues.write_text(yaml.safe_dump({"queues": {QUEUE: {"metrics": "queue"}}}))
    folder = synthesize(queues, out=scratch / "cdk")
    core, queue = (_resources(folder / f"dueline-{name}.template.json") for name in ("core", f"queue-{QUEUE}"))
    functions = [each for each in core["AWS::Lambda::Function"] if "FunctionName" in each]
    (memory_mb,) = {each["MemorySize"] for each in functions}
    (stage,) = core["AWS::ApiGatewayV2::Stage"]
    (log_days,) = {each["RetentionInDays"] for each in core["AWS::Logs::LogGroup"]}
    return Deployed(
        memory_mb=memory_mb,
        queue_alarms=sum(map(_metrics_of, queue["AWS::CloudWatch::Alarm"])),
        core_alarms=sum(map(_metrics_of, core["AWS::CloudWatch::Alarm"])),
        queue_metrics=len(metrics.OF_A_QUEUE),
        core_metrics=len(metrics.OF_DEPLOYMENT),
        idle_metrics=len(metrics.OF_THE_WATCH - {metrics.ON_TIME_SHARE}),
        access_log_bytes=len(filled_in(stage["AccessLogSettings"]["Format"])),
        log_days=log_days,
    )


def filled_in(format: str, **other: str) -> str:
    """Return a line of the access log, of a job that is scheduled or what `other` has instead.

    Raises ValueError for a variable that is not known.
    """
    values = _FILLED_IN | other
    if unknown := set(_VARIABLE.findall(format)) - values.keys():
        raise ValueError(f"the access log has variables that are not filled in: {', '.join(sorted(unknown))}")
    return _VARIABLE.sub(lambda variable: values[variable[1]], format)


def _metrics_of(alarm: Mapping[str, Any]) -> int:
    """Return on how many metrics an alarm is, by which it is paid."""
    return 1 if "MetricName" in alarm else sum("MetricStat" in each for each in alarm["Metrics"])


def _resources(template: Path) -> dict[str, list[dict[str, Any]]]:
    by_type: dict[str, list[dict[str, Any]]] = {}
    for resource in json.loads(template.read_text())["Resources"].values():
        by_type.setdefault(resource["Type"], []).append(resource.get("Properties", {}))
    return by_type


@dataclass(frozen=True, kw_only=True, slots=True)
class Biller:
    """Bills what was counted by what is deployed, tables on demand."""

    deployed: Deployed

    def requests(self, step: Step, *, jobs: float | None = None) -> float:
        """Bill a step's requests, which take so many jobs further, by default those of the step."""
        units = step.writes * PRICES.write_units_million + step.reads * PRICES.read_units_million
        messages = step.sent * PRICES.sqs_million + step.grouped * PRICES.fair_million
        return float((units + messages) / (jobs or step.jobs))

    def invocation(self, step: Step, *, jobs: float | None = None, sweeps: int = 0) -> float:
        """Bill an invocation of a function: its requests, its time with that of sweeps, and what it logs."""
        share = 1 / (jobs or step.jobs)
        seconds = billed_seconds(step, self.deployed.memory_mb) + sweeps * SWEEP_SECONDS
        gb_seconds = seconds * self.deployed.memory_mb / 1024
        time = PRICES.lambda_million + gb_seconds * PRICES.lambda_gb_second * MILLION
        return self.requests(step, jobs=jobs) + float((time + self.logs(step.charged_log_bytes)) * share)

    def logs(self, charged_bytes: float) -> float:
        """Return what so many bytes of logs cost, taken in and kept, a million times."""
        a_gb = PRICES.log_gb + PRICES.log_gb_month * self.deployed.log_days / MONTH_DAYS
        return float(charged_bytes * MILLION / GB * a_gb)

    def http(self, *, jobs: float) -> float:
        """Bill a request to the HTTP API with so many jobs."""
        return float((PRICES.http_million + self.logs(self.deployed.access_log_bytes + LOG_EVENT_BYTES)) / jobs)

    def inbound(self, *, received: int, deleted: int) -> float:
        """Bill Lambda's own requests to an inbound queue: receives and deletes of so many messages each."""
        return float((1 / received + 1 / deleted) * (PRICES.sqs_million + PRICES.fair_million))

    def kept(self, row_bytes: int, *, days: float) -> float:
        """Bill a row that is kept for so many days."""
        gb_months = (row_bytes + ROW_OVERHEAD_BYTES) * MILLION / GB * days / MONTH_DAYS
        return float(gb_months * (PRICES.table_gb_month + PRICES.recovery_gb_month))

    def watch_month(self, *, measured: int = 0, is_idle: bool = False) -> float:
        """Return what metrics and alarms cost a month, with so many queues that have their own."""
        of_core = self.deployed.idle_metrics if is_idle else self.deployed.core_metrics
        alarms = self.deployed.core_alarms + measured * self.deployed.queue_alarms
        return watch_price(metrics=of_core + measured * self.deployed.queue_metrics, alarms=alarms)


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


def watch_price(*, metrics: int, alarms: int) -> float:
    """Return what so many metrics cost a month, and alarms on so many."""
    return float(metrics * PRICES.metric_month + alarms * PRICES.alarm_month)


def looks_month(*, partitions: int, dead_letters: int) -> float:
    """Return what the watch's looks cost a month at partitions and dead-letter queues.

    It reads the state and the first row of each partition, and the guard of TTL does so again. Its time is that of its
    requests, ten at once, and a second.
    """
    seconds = 1 + ceil(partitions / LANES) * 4 * DYNAMODB_SECONDS + ceil(dead_letters / LANES) * SQS_SECONDS
    gb_seconds = seconds / 2 * PRICES.lambda_gb_second * MILLION
    requests = 4 * partitions * PRICES.read_units_million + dead_letters * PRICES.sqs_million
    return float(requests + PRICES.lambda_million + gb_seconds) * MONTH_HOURS * 12 / MILLION


def polls_month() -> float:
    """Return what Lambda's receives from an empty queue cost in a month."""
    return POLLERS * MONTH_HOURS * 3600 / LONG_POLL_SECONDS * float(PRICES.sqs_million) / MILLION


RATES, HIGH = (1, 100, 10_000), 10_000
WAITS = (1, 30, 180)
# How many jobs a second a partition is to carry: a rule of thumb.
JOBS_PER_PARTITION = 500
TICK_SECONDS, SECONDS_A_MONTH = 60, MONTH_HOURS * 3600
CALL_JOBS = 100
# A tick of more jobs than these is no more expensive a job.
MOST_TICKED = 1200
# Dynein's protocol, and the same with whatever it allows done by ten or 25.
DYNEIN, DYNEIN_BATCHED = "dynein", "dynein batched"
# A move of a job by its id, and by its key.
MOVED, MOVED_BY_KEY = "moved", "moved by key"
# How many messages a receive of the inbound queue's event source brings.
RECEIVED = 10


class Load(NamedTuple):
    """Jobs of one queue that come evenly, so many a second."""

    rate: int

    @property
    def partitions(self) -> int:
        return ceil(self.rate / JOBS_PER_PARTITION)

    @property
    def ingested(self) -> int:
        """How many jobs come to each poller within the window, where all go by the buffer.

        >>> [Load(rate).ingested for rate in RATES]
        [1, 20, 500]
        """
        return min(Aws().batch, max(1, int(self.rate * Aws().window / POLLERS)))

    @property
    def ticked(self) -> int:
        """How many jobs a tick finds.

        >>> [Load(rate).ticked for rate in RATES]
        [60, 6000, 30000]
        """
        return self.rate * TICK_SECONDS // self.partitions

    @property
    def polled(self) -> int:
        """How many jobs Dynein finds when it polls a partition, once a second or at once after a full page.

        >>> [Load(rate).polled for rate in RATES]
        [1, 100, 100]
        """
        return min(100, max(1, self.rate // self.partitions))


class Way(NamedTuple):
    """How jobs are submitted, so many in a call, and by which route.

    `by` a `direct` client, `invoked` or over `http` with ids that the library makes; invoked, too, are those `keyed` by
    the caller, and those `buffered` because the table throttles.
    """

    by: str
    jobs: int
    route: Route = Route.TABLE


INVOKE_ONE_BY_ONE, INVOKE_CALLS = "invoke, one by one", "invoke, 100 a call"
INVOKE_KEYED, INVOKE_SOON = f"{INVOKE_ONE_BY_ONE}, with a key", "invoke, due within 15 min, one by one"
DIRECT_ONE_BY_ONE, DIRECT_IN_TENS = "direct client, one by one", "direct client, in tens"
HTTP_ONE_BY_ONE = "HTTP, one by one"
WAYS_OF_ALL_SIZES = {
    INVOKE_ONE_BY_ONE: Way("invoked", 1),
    "invoke, in tens": Way("invoked", BATCH_MESSAGES),
    INVOKE_CALLS: Way("invoked", CALL_JOBS),
    DIRECT_ONE_BY_ONE: Way("direct", 1),
    DIRECT_IN_TENS: Way("direct", BATCH_MESSAGES),
    HTTP_ONE_BY_ONE: Way("http", 1),
    "HTTP, 100 a call": Way("http", CALL_JOBS),
    INVOKE_SOON: Way("invoked", 1, Route.DIRECT),
    "direct client, due within 15 min, one by one": Way("direct", 1, Route.DIRECT),
    "direct client, due within 15 min, in tens": Way("direct", BATCH_MESSAGES, Route.DIRECT),
}
WAYS = {
    **WAYS_OF_ALL_SIZES,
    INVOKE_KEYED: Way("keyed", 1),
    f"{INVOKE_ONE_BY_ONE}, by the buffer": Way("buffered", 1),
}
# Those that are billed by rate and wait.
USUAL_WAYS = (INVOKE_ONE_BY_ONE, INVOKE_KEYED, DIRECT_IN_TENS, HTTP_ONE_BY_ONE)
OURS = f"Dueline, {DIRECT_IN_TENS}"
CODED, BATCHED = "Dynein as coded", "Dynein batched"
SCHEDULER, FREE = "EventBridge Scheduler", "EventBridge Scheduler, 14 million a month free"


def scheduler_bill(load: Load | None) -> float:
    """Return the bill of an EventBridge schedule that sends to SQS; without a load, of one above the free ones."""
    free = PRICES.schedules_free / (load.rate * SECONDS_A_MONTH) if load else 0.0
    return float(max(0.0, 1 - free) * PRICES.schedule_million + PRICES.sqs_million)


def named(kind: str, *parts: object) -> str:
    """Return the name of a step, such as tick|60|1 KB."""
    return "|".join([kind, *map(str, parts)])


# Calls for one job: by which way, the step, the row that it puts, and how long after the due time that is kept.
CANCEL = "cancel"
CALLS = {
    f"{by} {what}": (by, step, row, kept)
    for by in ("invoked", "direct")
    for what, step, row, kept in (
        ("schedule", named(by, Route.TABLE, 1, USUAL), USUAL.name, RETENTION),
        (CANCEL, named(CANCEL, by), CANCEL, MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION),
    )
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Bills jobs of one queue that wait for so many days."""

    steps: Mapping[str, Step]
    biller: Biller
    row_bytes: Mapping[str, int]

    def dueline(self, way: Way, *, rate: int = HIGH, size: Size = USUAL, days: float = 1) -> float:
        """Return the bill of a job of ours, with its share of what is paid by the month."""
        load = Load(rate)
        watched = self.biller.watch_month() / (rate * SECONDS_A_MONTH) * MILLION
        bill = self._submitted(way, size) + watched
        if way.route is Route.DIRECT:
            return bill
        step = self.steps[named("tick", min(MOST_TICKED, load.ticked), size)]
        bill += self._tick(step, jobs=step.jobs) + self.biller.kept(
            self.row_bytes[size.name], days=days + RETENTION.days + TTL_DAYS
        )
        return bill + self._ingested(load, size) if way.by == "buffered" else bill

    def dynein(self, *, batched: bool, rate: int = HIGH, days: float = 1) -> float:
        """Return the bill of a job of Dynein's: its requests and its row; none of the machines that it runs on."""
        which = DYNEIN_BATCHED if batched else DYNEIN
        steps = named(which, "in", USUAL), named(which, "out", Load(rate).polled, USUAL)
        ingested, polled = (self.biller.requests(self.steps[step]) for step in steps)
        return ingested + polled + self.biller.kept(self.row_bytes[USUAL.name], days=days)

    def idle_partition(self) -> float:
        """Return what a partition costs in a month without a job: its ticks."""
        return self._tick(self.steps[named("tick", 0, USUAL)], jobs=1) * SECONDS_A_MONTH / TICK_SECONDS / MILLION

    def _submitted(self, way: Way, size: Size) -> float:
        bill = self.call(way.by, self.steps[named(way.by, way.route, way.jobs, size)])
        return bill + self.biller.http(jobs=way.jobs) if way.by == "http" else bill

    def call(self, by: str, step: Step) -> float:
        """Return the bill of a call, without the gateway's part and what comes of it."""
        return self.biller.requests(step) if by == "direct" else self.biller.invocation(step)

    def _ingested(self, load: Load, size: Size) -> float:
        jobs = load.ingested
        step = self.steps[named("ingest", jobs, min(jobs, load.partitions), size)]
        by_lambda = self.biller.inbound(received=RECEIVED, deleted=min(jobs, BATCH_MESSAGES))
        return by_lambda + self.biller.invocation(step)

    def _tick(self, step: Step, *, jobs: int) -> float:
        invoked = self.biller.invocation(step, jobs=jobs, sweeps=ceil(step.jobs / SWEPT_JOBS))
        return invoked + float(PRICES.schedule_million / jobs)


def figures(costs: Costs) -> Figures:
    """Return all bills, in dollars a million jobs."""
    by_way = {
        name: {size.name: costs.dueline(way, size=size) for size in (SIZES if name in WAYS_OF_ALL_SIZES else (USUAL,))}
        for name, way in WAYS.items()
    }
    biller, polls = costs.biller, 2 * polls_month()
    # The planner's partition and dead-letter queue are the deployment's, with three more of these.
    own, one_more = looks_month(partitions=1, dead_letters=3), looks_month(partitions=2, dead_letters=4)
    idle = {
        "partition": costs.idle_partition(),
        "queue": one_more - own,
        "deployment": biller.watch_month(is_idle=True) + polls + own + costs.idle_partition(),
        "whole": biller.watch_month() + polls + own + costs.idle_partition(),
        "measured": one_more - own + biller.watch_month(measured=1) - biller.watch_month(),
    }
    return {
        "by_way": by_way,
        "by_rate": {str(rate): _of_all(costs, rate=rate) | {FREE: scheduler_bill(Load(rate))} for rate in RATES},
        "by_wait": {str(days): _of_all(costs, days=days) | {SCHEDULER: scheduler_bill(None)} for days in WAITS},
        "idle": idle,
        "write_units": write_units(costs.steps),
        "calls": calls(costs),
        "counted": {name: asdict(step) for name, step in costs.steps.items()},
        "row_bytes": dict(costs.row_bytes),
        "deployed": asdict(costs.biller.deployed),
    }


def write_units(steps: Mapping[str, Step]) -> Figures:
    """Return the write units of scheduling a job of the usual size, and of moving one: by its id, and by its key."""
    of = {"a job": ("invoked", "keyed"), "a move": (MOVED, MOVED_BY_KEY)}
    units = {way: steps[named(way, Route.TABLE, 1, USUAL)].writes for ways in of.values() for way in ways}
    return {what: {"by id": units[by_id], "by key": units[by_key]} for what, (by_id, by_key) in of.items()}


def calls(costs: Costs) -> Figures:
    """Return what calls cost, one by one, of a job that is due in a day."""
    figures = {}
    for what, (by, name, row, kept) in CALLS.items():
        step, row_bytes = costs.steps[name], costs.row_bytes[row]
        figures[what] = {
            "requests": sum(step.calls.values()),
            "write units": step.writes,
            "read units": step.reads,
            "$ a million": costs.call(by, step),
            "$ a million, of its row": costs.biller.kept(row_bytes, days=1 + kept.days + TTL_DAYS),
        }
    return figures


def _of_all(costs: Costs, **at: Any) -> dict[str, float]:
    """Return the bills of our usual ways and of Dynein, at a rate or after a wait."""
    return {
        **{f"Dueline, {name}": costs.dueline(WAYS[name], **at) for name in USUAL_WAYS},
        CODED: costs.dynein(batched=False, **at),
        BATCHED: costs.dynein(batched=True, **at),
    }
