"""The figures: bills of all the ways, rates, sizes and waits, out of what was counted."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import product
from typing import Any

from bench.cost.bill import FAIR, RECOVERY, SQS, STORAGE, TTL_DAYS, WRITES, Biller, Capacity
from bench.cost.payloads import PACKED, RETENTION, SIZES
from bench.cost.plan import HIGH, HTTP_CALL_JOBS, POLLERS, RATES, Load
from bench.cost.ways import TENS, Costs, Way, total
from bench.part import Figures, Target
from dueline.model.job import Route

WAITS = (1, 30, 180)
ONE, HTTP_ONE, HTTP_MANY = replace(TENS, jobs=1), Way(by="http", jobs=1), Way(by="http", jobs=HTTP_CALL_JOBS)
KEYED_ONE, KEYED_MANY = replace(HTTP_ONE, by="keyed"), replace(HTTP_MANY, by="keyed")
IN_TENS = "library, table, in tens"
WAYS = {
    IN_TENS: TENS,
    "library, table, one by one": ONE,
    "library, direct, in tens": replace(TENS, route=Route.DIRECT),
    "library, direct, one by one": replace(ONE, route=Route.DIRECT),
    "HTTP, table, 100 a call": HTTP_MANY,
    "HTTP, table, one by one": HTTP_ONE,
    "HTTP, direct, 100 a call": replace(HTTP_MANY, route=Route.DIRECT),
    "HTTP, direct, one by one": replace(HTTP_ONE, route=Route.DIRECT),
}
# With an idempotency key, which the library's client sends with every job over HTTP.
KEYED = {"HTTP, table, 100 a call, with keys": KEYED_MANY, "HTTP, table, one by one, with keys": KEYED_ONE}
OURS = "Dueline, in tens"
HTTP_IN_CALLS, HTTP_SINGLY = "Dueline, HTTP, 100 a call", "Dueline, HTTP, one by one"
CODED, BATCHED = "Dynein as coded", "Dynein batched"
SCHEDULER, FREE = "EventBridge Scheduler", "EventBridge Scheduler, 14 million a month free"
SQS_ONE, SQS_TENS = "SQS alone, one by one", "SQS alone, in tens"

Bill = dict[str, float]


def figures(costs: Costs) -> Figures:
    """Return all that tables and pictures tell, as plain JSON, in dollars a million jobs."""
    return {
        "by_way": {
            name: {size.name: total(_ours(costs, way, size=size)) for size in SIZES} for name, way in WAYS.items()
        },
        "keyed": {name: total(_ours(costs, way)) for name, way in KEYED.items()},
        "packed": {size.name: _packed(costs, size.name) for size in PACKED},
        "bills": bills(costs),
        "by_rate": {str(rate): _at(costs, rate) for rate in RATES},
        "by_wait": {str(days): _waiting(costs, days) for days in WAITS},
        "shapes": {str(rate): _shape(costs, rate) for rate in RATES},
        "idle": _idle(costs),
        "counted": {name: asdict(step) for name, step in costs.steps.items()},
        "row_bytes": dict(costs.row_bytes),
        "deployed": asdict(costs.biller.deployed),
    }


def bills(costs: Costs) -> dict[str, Bill]:
    """Return the bills line by line, at a high rate: jobs of 1 KB that wait a day."""
    load = Load(rate=HIGH)
    return {
        OURS: dict(_ours(costs, TENS)),
        HTTP_IN_CALLS: dict(_ours(costs, HTTP_MANY)),
        HTTP_SINGLY: dict(_ours(costs, HTTP_ONE)),
        CODED: dict(costs.dynein(batched=False, load=load)),
        BATCHED: dict(costs.dynein(batched=True, load=load)),
        SCHEDULER: dict(costs.scheduler(load=None)),
        SQS_ONE: dict(costs.sqs(jobs=1)),
        SQS_TENS: dict(costs.sqs(jobs=10)),
    }


def ratios(told: Mapping[str, Any]) -> dict[str, float]:
    """Return by what share the table route in tens is dearer than others, or cheaper."""
    ours = total(told["bills"][OURS])
    against = {"of Dynein as coded": CODED, "of Dynein batched": BATCHED, "of EventBridge Scheduler": SCHEDULER}
    return {name: ours / total(told["bills"][other]) for name, other in against.items()}


def targets(told: Mapping[str, Any]) -> tuple[Target, ...]:
    """Return what the figures are to reach."""
    bill, share = told["bills"][OURS], ratios(told)
    why = _why(bill)
    return (
        Target(
            what="cost of a million jobs, 1 KB, in tens, by the table", got=total(bill), bound=1.00, unit=" $", why=why
        ),
        Target(what="the same of 200 B", got=told["by_way"][IN_TENS]["200 B"], bound=1.00, unit=" $", why=why),
        Target(what="cost, of Dynein as coded", got=share["of Dynein as coded"], bound=0.40, why=why),
        Target(what="cost, of Dynein batched", got=share["of Dynein batched"], bound=0.50, why=why),
        Target(
            what="cost, of EventBridge Scheduler above its free tier",
            got=share["of EventBridge Scheduler"],
            bound=0.75,
            why=why,
        ),
    )


def dearer(told: Mapping[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """Yield where a way of ours is dearer than another that can do it: the case, the other, our price and theirs."""
    for rate, prices in told["by_rate"].items():
        ours = {name: price for name, price in prices.items() if name.startswith("Dueline")}
        others = {name: price for name, price in prices.items() if name not in ours and "provisioned" not in name}
        for (way, mine), (other, theirs) in product(ours.items(), others.items()):
            if mine > theirs and "provisioned" not in way:
                yield f"{way}, {per_second(rate)}", other, mine, theirs
    for days, prices in told["by_wait"].items():
        for other in (CODED, BATCHED, SCHEDULER):
            if int(days) > 1 and prices[OURS] > prices[other]:
                yield f"{OURS}, {days} days' wait, {per_second(HIGH)}", other, prices[OURS], prices[other]


def per_second(rate: int | str) -> str:
    """
    >>> per_second(1), per_second("10000")
    ('1 job/s', '10,000 jobs/s')
    """
    return f"{int(rate):,} job{'s' if int(rate) > 1 else ''}/s"


def _why(bill: Bill) -> str:
    """Say in a sentence what the bill consists of; a row is kept longer than its job waits."""
    kept = bill[STORAGE] + bill[RECOVERY]
    days = f"{RETENTION.days} days' retention after it is due and {TTL_DAYS} until TTL takes it"
    requests = bill[SQS] + bill[FAIR]
    return f"${bill[WRITES]:.2f} is the one write, ${requests:.2f} SQS, and ${kept:.2f} keeping the row: a day, {days}"


def _ours(costs: Costs, way: Way, **at: Any) -> Bill:
    return dict(costs.dueline(way, load=at.pop("load", Load(rate=HIGH)), **at))


def _at(costs: Costs, rate: int) -> Bill:
    load, provisioned = Load(rate=rate), costs.at(_provisioned(costs.biller))
    return {
        OURS: total(_ours(costs, TENS, load=load)),
        HTTP_IN_CALLS: total(_ours(costs, HTTP_MANY, load=load)),
        HTTP_SINGLY: total(_ours(costs, HTTP_ONE, load=load)),
        CODED: total(costs.dynein(batched=False, load=load)),
        BATCHED: total(costs.dynein(batched=True, load=load)),
        FREE: total(costs.scheduler(load=load)),
        f"{OURS}, provisioned": total(_ours(provisioned, TENS, load=load)),
        f"{BATCHED}, provisioned": total(provisioned.dynein(batched=True, load=load)),
    }


def _waiting(costs: Costs, days: int) -> Bill:
    load = Load(rate=HIGH)
    return {
        OURS: total(_ours(costs, TENS, days=days)),
        CODED: total(costs.dynein(batched=False, load=load, days=days)),
        BATCHED: total(costs.dynein(batched=True, load=load, days=days)),
        SCHEDULER: total(costs.scheduler(load=None)),
    }


def _packed(costs: Costs, size: str) -> dict[str, float]:
    batch = Load(rate=HIGH).ingested
    step = costs.steps[f"ingest|{batch.jobs}|{batch.partitions}|{size}"]
    return {"row_bytes": costs.row_bytes[size], "writes": step.writes / step.jobs}


def _shape(costs: Costs, rate: int) -> dict[str, float]:
    load = Load(rate=rate)
    return {
        "partitions": load.partitions,
        "received": load.received,
        "ingested": load.ingested.jobs,
        "ticked": load.ticked,
        "polled": load.polled,
    }


def _idle(costs: Costs) -> dict[str, float]:
    of_a_queue = costs.biller.watch_month(queues=1) - costs.biller.watch_month(queues=0)
    return {
        "partition": total(costs.idle_month()),
        "queue": of_a_queue,
        "deployment": costs.biller.watch_month(queues=0) + costs.idle_polls_month(pollers=POLLERS),
    }


def _provisioned(biller: Biller) -> Biller:
    return replace(biller, capacity=Capacity.provisioned(biller.prices))
