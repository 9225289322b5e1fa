"""The figures: bills of all the ways, rates, sizes and waits, out of what was counted."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import product
from typing import Any

from bench.cost.bill import Terms
from bench.cost.payloads import JSON, SIZES, USUAL
from bench.cost.plan import CALL_JOBS, CALLERS, HIGH, LINGER_SECONDS, POLLERS, RATES, Load
from bench.cost.prices import Prices
from bench.cost.ways import TENS, Costs, Way, total
from bench.part import Figures
from dueline.model.job import Route

WAITS = (1, 30, 180)
ONE, HUNDREDS = replace(TENS, jobs=1), replace(TENS, jobs=CALL_JOBS)
HTTP_ONE, HTTP_MANY = Way(by="http", jobs=1), Way(by="http", jobs=CALL_JOBS)
LINGER = f"HTTP, {CALLERS} callers at once, linger {LINGER_SECONDS * 1000:.0f} ms"
HTTP_ONE_BY_ONE, KEYED = "HTTP, one by one", "HTTP, one by one, with a key"
DIRECT_ONE, IN_TENS = "direct client, one by one", "direct client, in tens"
WAYS = {
    HTTP_ONE_BY_ONE: HTTP_ONE,
    "HTTP, 100 a call": HTTP_MANY,
    DIRECT_ONE: ONE,
    IN_TENS: TENS,
    "direct client, 100 a call": HUNDREDS,
    "HTTP, due within 15 min, one by one": replace(HTTP_ONE, route=Route.DIRECT),
    "HTTP, due within 15 min, 100 a call": replace(HTTP_MANY, route=Route.DIRECT),
    "direct client, due within 15 min, one by one": replace(ONE, route=Route.DIRECT),
    "direct client, due within 15 min, in tens": replace(TENS, route=Route.DIRECT),
}
# Of the usual size alone.
WAYS_OF_ONE_SIZE = {
    LINGER: replace(HTTP_ONE, by="lingering"),
    KEYED: replace(HTTP_ONE, by="keyed"),
    "HTTP, 100 a call, with keys": replace(HTTP_MANY, by="keyed"),
    "HTTP, one by one, by the buffer": replace(HTTP_ONE, by="buffered"),
}
OURS = "Dueline, in tens"
HTTP_IN_CALLS, HTTP_SINGLY = "Dueline, HTTP, 100 a call", "Dueline, HTTP, one by one"
LINGERED, KEYED_SINGLY = f"Dueline, {LINGER}", f"Dueline, {KEYED}"
OF_JSON = f"{OURS}, {JSON}"
CHEAPEST = f"{OF_JSON}, infrequent, no recovery"
PROVISIONED = f"{OURS}, provisioned"
CODED, BATCHED = "Dynein as coded", "Dynein batched"
SCHEDULER, FREE = "EventBridge Scheduler", "EventBridge Scheduler, 14 million a month free"
SQS_ONE, SQS_TENS = "SQS alone, one by one", "SQS alone, in tens"

Bill = dict[str, float]


def figures(costs: Costs) -> Figures:
    """Return all that tables and pictures tell, as plain JSON, in dollars a million jobs."""
    return {
        "by_way": {
            name: {size.name: total(_ours(costs, way, size=size)) for size in SIZES} for name, way in WAYS.items()
        }
        | {name: {USUAL.name: total(_ours(costs, way))} for name, way in WAYS_OF_ONE_SIZE.items()},
        "together": costs.jobs_together,
        "bills": bills(costs),
        "by_rate": {str(rate): _at(costs, rate) for rate in RATES},
        "by_wait": {str(days): _waiting(costs, days) for days in WAITS},
        "shapes": {str(rate): _shape(rate) for rate in RATES},
        "idle": _idle(costs),
        "counted": {name: asdict(step) for name, step in costs.steps.items()},
        "row_bytes": dict(costs.row_bytes),
        "deployed": asdict(costs.biller.deployed),
    }


def bills(costs: Costs) -> dict[str, Bill]:
    """Return the bills line by line, at a high rate: jobs of 1 KB that wait a day."""
    load = Load(rate=HIGH)
    return {
        HTTP_SINGLY: dict(_ours(costs, HTTP_ONE)),
        LINGERED: dict(_ours(costs, WAYS_OF_ONE_SIZE[LINGER])),
        HTTP_IN_CALLS: dict(_ours(costs, HTTP_MANY)),
        OURS: dict(_ours(costs, TENS)),
        PROVISIONED: dict(_ours(_on(costs, Terms.provisioned), TENS)),
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


def dearer(told: Mapping[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """Yield where a way of ours is dearer than another that can do it: the case, the other, our price and theirs."""
    for rate, prices in told["by_rate"].items():
        ours = {name: price for name, price in prices.items() if name.startswith("Dueline")}
        others = {name: price for name, price in prices.items() if name not in ours and "provisioned" not in name}
        for (way, mine), (other, theirs) in product(ours.items(), others.items()):
            if mine > theirs and "provisioned" not in way:
                yield f"{way}, {per_second(rate)}", other, mine, theirs
    for days, prices in told["by_wait"].items():
        for way, other in product((HTTP_SINGLY, OURS, OF_JSON, CHEAPEST), (CODED, BATCHED, SCHEDULER)):
            if int(days) > 1 and prices[way] > prices[other]:
                yield f"{way}, {days} days' wait, {per_second(HIGH)}", other, prices[way], prices[other]


def per_second(rate: int | str) -> str:
    """
    >>> per_second(1), per_second("10000")
    ('1 job/s', '10,000 jobs/s')
    """
    return f"{int(rate):,} job{'s' if int(rate) > 1 else ''}/s"


def _ours(costs: Costs, way: Way, **at: Any) -> Bill:
    return dict(costs.dueline(way, load=at.pop("load", Load(rate=HIGH)), **at))


def _at(costs: Costs, rate: int) -> Bill:
    load, provisioned = Load(rate=rate), _on(costs, Terms.provisioned)
    return {
        HTTP_SINGLY: total(_ours(costs, HTTP_ONE, load=load)),
        HTTP_IN_CALLS: total(_ours(costs, HTTP_MANY, load=load)),
        OURS: total(_ours(costs, TENS, load=load)),
        CODED: total(costs.dynein(batched=False, load=load)),
        BATCHED: total(costs.dynein(batched=True, load=load)),
        FREE: total(costs.scheduler(load=load)),
        PROVISIONED: total(_ours(provisioned, TENS, load=load)),
        f"{BATCHED}, provisioned": total(provisioned.dynein(batched=True, load=load)),
    }


def _waiting(costs: Costs, days: int) -> Bill:
    load, infrequent = Load(rate=HIGH), _on(costs, Terms.infrequent)
    return {
        HTTP_SINGLY: total(_ours(costs, HTTP_ONE, days=days)),
        OURS: total(_ours(costs, TENS, days=days)),
        OF_JSON: total(_ours(costs, TENS, size=JSON, days=days)),
        CHEAPEST: total(_ours(infrequent, TENS, size=JSON, days=days)),
        CODED: total(costs.dynein(batched=False, load=load, days=days)),
        BATCHED: total(costs.dynein(batched=True, load=load, days=days)),
        SCHEDULER: total(costs.scheduler(load=None)),
    }


def _shape(rate: int) -> dict[str, float]:
    load = Load(rate=rate)
    return {"partitions": load.partitions, "ticked": load.ticked, "polled": load.polled}


def _idle(costs: Costs) -> dict[str, float]:
    of_a_queue = costs.biller.watch_month(queues=1) - costs.biller.watch_month(queues=0)
    return {
        "partition": total(costs.idle_month()),
        "queue": of_a_queue,
        "deployment": costs.biller.watch_month(queues=0) + costs.idle_polls_month(pollers=POLLERS),
    }


def _on(costs: Costs, terms: Callable[[Prices], Terms]) -> Costs:
    """Return costs with the jobs table on other terms."""
    return costs.at(replace(costs.biller, terms=terms(costs.biller.prices)))
