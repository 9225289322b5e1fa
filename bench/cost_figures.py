"""Bills of all the ways, rates, sizes and waits, out of what was counted of each step on a job's way."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import NamedTuple

from bench.bill import (
    INFREQUENT,
    MILLION,
    MONTH_HOURS,
    PRICES,
    PROVISIONED,
    SCHEDULES,
    SQS,
    TTL_DAYS,
    WATCH,
    Biller,
    Lines,
    Terms,
    lines,
    polls_month,
    total,
)
from bench.counted import Step
from bench.harness import Figures
from bench.payloads import JSON, RETENTION, SIZES, USUAL, Size
from dueline.core.job import Route
from dueline.core.message import BATCH_MESSAGES

RATES, HIGH = (1, 100, 10_000, 100_000), 10_000
WAITS = (1, 30, 180)
# How many jobs a second a partition is to carry: a rule of thumb.
JOBS_PER_PARTITION = 500
TICK_SECONDS, SECONDS_A_MONTH = 60, MONTH_HOURS * 3600
CALL_JOBS = 100
# Dynein's protocol, and the same with whatever it allows done by ten or 25.
DYNEIN, DYNEIN_BATCHED = "dynein", "dynein batched"
# Callers that schedule one by one, at once, over one client, and how long these wait for each other.
CALLERS, LINGER_SECONDS = 8, 0.005
LINGERING = "lingering"
# What the inbound queue's event source has, how many pollers it has at least, and what a receive brings.
BATCH_SIZE, WINDOW_SECONDS, POLLERS, RECEIVED = 500, 1, 5, 10


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
        [1, 20, 500, 500]
        """
        return min(BATCH_SIZE, max(1, int(self.rate * WINDOW_SECONDS / POLLERS)))

    @property
    def ticked(self) -> int:
        """How many jobs a tick finds.

        >>> [Load(rate).ticked for rate in RATES]
        [60, 6000, 30000, 30000]
        """
        return self.rate * TICK_SECONDS // self.partitions

    @property
    def polled(self) -> int:
        """How many jobs Dynein finds when it polls a partition, once a second or at once after a full page.

        >>> [Load(rate).polled for rate in RATES]
        [1, 100, 100, 100]
        """
        return min(100, max(1, self.rate // self.partitions))


class Way(NamedTuple):
    """How jobs are submitted, so many in a call, and by which route.

    `by` a `direct` client, or over `http` with ids that the library makes, there maybe `keyed` by the caller,
    `buffered` because the table throttles, or `lingering`: one by one, but by callers whose jobs travel together.
    """

    by: str
    jobs: int
    route: Route = Route.TABLE


TENS, HTTP_ONE, HTTP_MANY = Way("direct", BATCH_MESSAGES), Way("http", 1), Way("http", CALL_JOBS)
HTTP_ONE_BY_ONE, HTTP_SOON = "HTTP, one by one", "HTTP, due within 15 min, one by one"
HTTP_CALLS = "HTTP, 100 a call"
LINGER = f"HTTP, {CALLERS} callers at once, linger {LINGER_SECONDS * 1000:.0f} ms"
WAYS = {
    HTTP_ONE_BY_ONE: HTTP_ONE,
    HTTP_CALLS: HTTP_MANY,
    "direct client, one by one": Way("direct", 1),
    "direct client, in tens": TENS,
    "direct client, 100 a call": Way("direct", CALL_JOBS),
    HTTP_SOON: Way("http", 1, Route.DIRECT),
    "HTTP, due within 15 min, 100 a call": Way("http", CALL_JOBS, Route.DIRECT),
    "direct client, due within 15 min, one by one": Way("direct", 1, Route.DIRECT),
    "direct client, due within 15 min, in tens": Way("direct", BATCH_MESSAGES, Route.DIRECT),
}
WAYS_OF_THE_USUAL_SIZE = {
    LINGER: Way("lingering", 1),
    "HTTP, one by one, with a key": Way("keyed", 1),
    "HTTP, 100 a call, with keys": Way("keyed", CALL_JOBS),
    "HTTP, one by one, by the buffer": Way("buffered", 1),
}
OURS, HTTP_SINGLY, HTTP_IN_CALLS = "Dueline, in tens", f"Dueline, {HTTP_ONE_BY_ONE}", f"Dueline, {HTTP_CALLS}"
LINGERED, OURS_PROVISIONED = f"Dueline, {LINGER}", f"{OURS}, provisioned"
OURS_JSON = f"{OURS}, {JSON}"
CHEAPEST = f"{OURS_JSON}, infrequent, no recovery"
CODED, BATCHED = "Dynein as coded", "Dynein batched"
SCHEDULER, FREE = "EventBridge Scheduler", "EventBridge Scheduler, 14 million a month free"


def scheduler_bill(load: Load | None) -> Lines:
    """Return the bill of an EventBridge schedule that sends to SQS; without a load, of one above the free ones."""
    free = PRICES.schedules_free / (load.rate * SECONDS_A_MONTH) if load else 0.0
    return lines({SCHEDULES: max(0.0, 1 - free) * PRICES.schedule_million, SQS: PRICES.sqs_million})


def sqs_bill(*, jobs: int) -> Lines:
    """Return the bill of SQS alone: a delay of 15 minutes at most, no look-up and no cancel."""
    return lines({SQS: PRICES.sqs_million / jobs})


def named(kind: str, *parts: object) -> str:
    """Return the name of a step, such as tick|60|1 KB."""
    return "|".join([kind, *map(str, parts)])


def jobs_together(step: Step) -> int:
    """Return how many jobs each request carries where callers linger, rounded down."""
    return step.jobs // step.calls["POST"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Bills jobs of one queue that wait for so many days. A tick of more jobs than `most_ticked` is no dearer a job."""

    steps: Mapping[str, Step]
    biller: Biller
    row_bytes: Mapping[str, int]
    most_ticked: int

    def on(self, terms: Terms) -> "Costs":
        """Return costs with the jobs table on other terms."""
        return replace(self, biller=replace(self.biller, terms=terms))

    def dueline(self, way: Way, *, rate: int = HIGH, size: Size = USUAL, days: float = 1) -> Lines:
        """Return the bill of a job of ours, with its share of what is paid by the month."""
        load = Load(rate)
        watched = self.biller.watch_month(queues=1) / (rate * SECONDS_A_MONTH) * MILLION
        bill = self._submitted(way, size) + lines({WATCH: watched})
        if way.route is Route.DIRECT:
            return bill
        step = self.steps[named("tick", min(self.most_ticked, load.ticked), size)]
        bill += self._tick(step, jobs=step.jobs) + self.biller.kept(
            self.row_bytes[size.name], days=days + RETENTION.days + TTL_DAYS
        )
        return bill + self._ingested(load, size) if way.by == "buffered" else bill

    def dynein(self, *, batched: bool, rate: int = HIGH, days: float = 1) -> Lines:
        """Return the bill of a job of Dynein's: its requests and its row; none of the machines that it runs on."""
        which = DYNEIN_BATCHED if batched else DYNEIN
        steps = named(which, "in", USUAL), named(which, "out", Load(rate).polled, USUAL)
        taken_in, polled = (self.biller.requests(self.steps[step]) for step in steps)
        return taken_in + polled + self.biller.kept(self.row_bytes[USUAL.name], days=days)

    def idle_partition(self) -> float:
        """Return what a partition costs in a month without a job: its ticks."""
        return total(self._tick(self.steps[named("tick", 0, USUAL)], jobs=1)) * SECONDS_A_MONTH / TICK_SECONDS / MILLION

    def _submitted(self, way: Way, size: Size) -> Lines:
        if way.by == "lingering":
            way = Way("http", jobs_together(self.steps[LINGERING]))
        step = self.steps[named(way.by, way.route, way.jobs, size)]
        if way.by == "direct":
            return self.biller.requests(step)
        return self.biller.http(jobs=way.jobs) + self.biller.invocation(step)

    def _ingested(self, load: Load, size: Size) -> Lines:
        jobs = load.ingested
        step = self.steps[named("ingest", jobs, min(jobs, load.partitions), size)]
        by_lambda = self.biller.inbound(received=RECEIVED, deleted=min(jobs, BATCH_MESSAGES))
        return by_lambda + self.biller.invocation(step)

    def _tick(self, step: Step, *, jobs: int) -> Lines:
        return self.biller.invocation(step, jobs=jobs) + lines({SCHEDULES: PRICES.schedule_million / jobs})


def figures(costs: Costs) -> Figures:
    """Return all bills, in dollars a million jobs."""
    by_way = {
        name: {size.name: total(costs.dueline(way, size=size)) for size in SIZES} for name, way in WAYS.items()
    } | {name: {USUAL.name: total(costs.dueline(way))} for name, way in WAYS_OF_THE_USUAL_SIZE.items()}
    watched, with_a_queue = (costs.biller.watch_month(queues=queues) for queues in (0, 1))
    idle = {
        "partition": costs.idle_partition(),
        "queue": with_a_queue - watched,
        "deployment": watched + polls_month(),
    }
    return {
        "by_way": by_way,
        "together": jobs_together(costs.steps[LINGERING]),
        "bills": bills(costs),
        "by_rate": {str(rate): {name: total(bill) for name, bill in _at(costs, rate).items()} for rate in RATES},
        "by_wait": {str(days): {name: total(bill) for name, bill in _after(costs, days).items()} for days in WAITS},
        "idle": idle,
        "counted": {name: asdict(step) for name, step in costs.steps.items()},
        "row_bytes": dict(costs.row_bytes),
        "deployed": asdict(costs.biller.deployed),
    }


def bills(costs: Costs) -> dict[str, Lines]:
    """Return the bills line by line, at a high rate: jobs of 1 KB that wait a day."""
    return {
        HTTP_SINGLY: costs.dueline(HTTP_ONE),
        LINGERED: costs.dueline(WAYS_OF_THE_USUAL_SIZE[LINGER]),
        HTTP_IN_CALLS: costs.dueline(HTTP_MANY),
        OURS: costs.dueline(TENS),
        OURS_PROVISIONED: costs.on(PROVISIONED).dueline(TENS),
        CODED: costs.dynein(batched=False),
        BATCHED: costs.dynein(batched=True),
        SCHEDULER: scheduler_bill(None),
        "SQS alone, one by one": sqs_bill(jobs=1),
        "SQS alone, in tens": sqs_bill(jobs=10),
    }


def _at(costs: Costs, rate: int) -> dict[str, Lines]:
    provisioned = costs.on(PROVISIONED)
    return {
        HTTP_SINGLY: costs.dueline(HTTP_ONE, rate=rate),
        HTTP_IN_CALLS: costs.dueline(HTTP_MANY, rate=rate),
        OURS: costs.dueline(TENS, rate=rate),
        CODED: costs.dynein(batched=False, rate=rate),
        BATCHED: costs.dynein(batched=True, rate=rate),
        FREE: scheduler_bill(Load(rate)),
        OURS_PROVISIONED: provisioned.dueline(TENS, rate=rate),
        f"{BATCHED}, provisioned": provisioned.dynein(batched=True, rate=rate),
    }


def _after(costs: Costs, days: int) -> dict[str, Lines]:
    return {
        HTTP_SINGLY: costs.dueline(HTTP_ONE, days=days),
        OURS: costs.dueline(TENS, days=days),
        OURS_JSON: costs.dueline(TENS, size=JSON, days=days),
        CHEAPEST: costs.on(INFREQUENT).dueline(TENS, size=JSON, days=days),
        CODED: costs.dynein(batched=False, days=days),
        BATCHED: costs.dynein(batched=True, days=days),
        SCHEDULER: scheduler_bill(None),
    }
