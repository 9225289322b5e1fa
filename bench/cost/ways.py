"""What a job costs, by the way that it goes, at a rate: what was counted of each step on its way, billed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench.cost.bill import (
    MILLION,
    MONTH_HOURS,
    SCHEDULES,
    SQS,
    TTL_DAYS,
    WATCH,
    Biller,
    Lines,
    lines,
)
from bench.cost.payloads import RETENTION, USUAL, Size
from bench.cost.plan import BATCHED, CODED, LINGERING, RECEIVED, TICK_SECONDS, Load, Plan, named
from bench.cost.step import Step
from dueline.model.job import Route
from dueline.model.message import BATCH_MESSAGES

SECONDS_A_MONTH = MONTH_HOURS * 3600
# An event source mapping that finds nothing asks again after the longest wait that SQS has.
LONG_POLL_SECONDS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How jobs are given, so many in a call, and by which route.

    `by` a `direct` client, or over `http` with ids that the library makes, there maybe `keyed` by the caller,
    `buffered` because the table throttles, or `lingering`: one by one, but by callers whose jobs travel together.
    """

    by: str
    jobs: int
    route: Route = Route.TABLE


TENS = Way(by="direct", jobs=BATCH_MESSAGES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Bills jobs of one queue that wait for so many days, from the steps that were counted."""

    steps: Mapping[str, Step]
    plan: Plan
    biller: Biller
    row_bytes: Mapping[str, int]

    def dueline(self, way: Way, *, load: Load, size: Size = USUAL, days: float = 1) -> Lines:
        """Return the bill of a job of ours, with its share of what is paid by the month."""
        jobs_a_month = load.rate * SECONDS_A_MONTH
        bill = self._given(way, size) + lines({WATCH: self.biller.watch_month(queues=1) / jobs_a_month * MILLION})
        if way.route is Route.DIRECT:
            return bill
        kept = days + RETENTION.days + TTL_DAYS
        ingested = self._ingested(load, size) if way.by == "buffered" else Lines()
        return bill + ingested + self._ticked(load, size) + self.biller.kept(self.row_bytes[size.name], days=kept)

    def dynein(self, *, batched: bool, load: Load, size: Size = USUAL, days: float = 1) -> Lines:
        """Return the bill of a job of Dynein's: its requests and its row; none of the machines that it runs on."""
        which = BATCHED if batched else CODED
        taken_in, polled = self.steps[named(which, "in", size)], self.steps[named(which, "out", load.polled, size)]
        requests = self.biller.requests(taken_in) + self.biller.requests(polled)
        return requests + self.biller.kept(self.row_bytes[size.name], days=days)

    def scheduler(self, *, load: Load | None) -> Lines:
        """Return the bill of a schedule that sends to SQS; without a load, of one above the free ones."""
        free = self.biller.prices.schedules_free / (load.rate * SECONDS_A_MONTH) if load else 0.0
        paid = max(0.0, 1 - free)
        return lines({SCHEDULES: paid * self.biller.prices.schedule_million, SQS: self.biller.prices.sqs_million})

    def sqs(self, *, jobs: int) -> Lines:
        """Return the bill of SQS alone: a delay of 15 minutes at most, no look-up and no cancel."""
        return lines({SQS: self.biller.prices.sqs_million / jobs})

    def idle_month(self) -> Lines:
        """Return what a queue of one partition costs in a month without a job, the deployment's share apart."""
        ticks = SECONDS_A_MONTH / TICK_SECONDS
        return _times(self._a_tick(self.steps[named("tick", 0, USUAL)], jobs=1), ticks / MILLION)

    def idle_polls_month(self, *, pollers: int) -> float:
        """Return what Lambda's asking of an empty inbound queue costs in a month."""
        polls = pollers * SECONDS_A_MONTH / LONG_POLL_SECONDS
        return polls * self.biller.prices.sqs_million / MILLION

    def at(self, biller: Biller) -> "Costs":
        return replace(self, biller=biller)

    def _given(self, way: Way, size: Size) -> Lines:
        if way.by == "lingering":
            return self._given(replace(way, by="http", jobs=self.jobs_together), size)
        step = self.steps[named(way.by, way.route, way.jobs, size)]
        if way.by == "direct":
            return self.biller.requests(step)
        return self.biller.http(jobs=way.jobs) + self.biller.invocation(step)

    @property
    def jobs_together(self) -> int:
        """How many jobs a request carries where callers linger, rounded down."""
        return together(self.steps[LINGERING])

    def _ingested(self, load: Load, size: Size) -> Lines:
        batch = load.ingested
        step = self.steps[named("ingest", batch.jobs, batch.partitions, size)]
        by_lambda = self.biller.inbound(received=RECEIVED, deleted=min(batch.jobs, BATCH_MESSAGES))
        return by_lambda + self.biller.invocation(step)

    def _ticked(self, load: Load, size: Size) -> Lines:
        step = self.steps[named("tick", self.plan.ticked(load), size)]
        return self._a_tick(step, jobs=step.jobs)

    def _a_tick(self, step: Step, *, jobs: int) -> Lines:
        fired = lines({SCHEDULES: self.biller.prices.schedule_million / jobs})
        return self.biller.invocation(step, jobs=jobs) + fired


def together(step: Step) -> int:
    """Return how many jobs each request of a step carries, rounded down."""
    return step.jobs // step.calls["POST"]


def _times(bill: Lines, factor: float) -> Lines:
    return lines({name: amount * factor for name, amount in bill.items()})


def total(bill: Mapping[str, float]) -> float:
    """Return what a bill comes to.

    >>> total({"Lambda": 0.5, "HTTP API": 1.0})
    1.5
    """
    return sum(bill.values())
