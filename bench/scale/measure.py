"""What is simulated, on two processes at once, and what follows from it."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any

from bench.part import Bench, Figures, Measured, Progress, Target
from bench.scale.parameters import Aws
from bench.scale.runs import LIFTED, ingest_rate, outage, steady, tick_rate
from bench.scale.story import DAY
from bench.units import write_units
from dueline.model.queue_settings import JOBS_PER_PARTITION

ROW_BYTES = (200, 1024, 4096)
RATES = (1_000, 10_000, 100_000)
SHARES = (0.3, 0.5, 0.8)
SERVICES = ("dynamodb", "sqs", "scheduler")
SOON_SECONDS = 1200.0
# A partition is checked with a little less than it sustains.
CHECKED = 0.95
HEADROOM = 1.5
ON_TIME_TARGET = 0.99999
_AS_IT_IS = "as it is"
_MISSED = 6
# Jobs that are due soon, when DynamoDB is back; at a higher load there is no end to that.
_SOON = "dynamodb, due soon"
_MOST_SHARE_OF_SOON = 0.5
Run = Callable[[], Any]
Results = dict[tuple[Any, ...], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much is simulated: how slow all is in the steady runs, the outages and the runs at a rate; seconds each."""

    sizes: tuple[int, ...] = ROW_BYTES
    knee: tuple[float, ...] = (300, 500, 700, 800, 900, 950, 1000, 1050, 1100, 1200)
    shares: tuple[float, ...] = SHARES
    lifted: tuple[str, ...] = tuple(LIFTED)
    rates: tuple[int, ...] = RATES
    slow: float = 50
    outage_slow: dict[str, float] = field(default_factory=lambda: {"dynamodb": 100, "sqs": 50, "scheduler": 50})
    rate_slow: float = 4
    seconds: float = 1800
    rate_seconds: float = 1080
    soon: bool = True

    @classmethod
    def quick(cls) -> "Plan":
        return cls(
            sizes=(1024,),
            knee=(500, 900, 1100),
            shares=(0.5,),
            lifted=(_AS_IT_IS, "sends half as long"),
            outage_slow={"dynamodb": 200, "sqs": 100, "scheduler": 100},
            rates=(10_000,),
            rate_slow=10,
            seconds=1200,
            rate_seconds=600,
            soon=False,
        )


def measure(bench: Bench) -> Measured:
    plan = Plan.quick() if bench.quick else Plan()
    first = _run(dict(_of_one_tick(plan)), bench.progress)
    sustained = {size: _sustained(first["tick", size], size) for size in plan.sizes}
    results = first | _run(dict(_of_partitions(plan, sustained)), bench.progress)
    figures = _figures(plan, results, sustained)
    return Measured(figures=figures, ratios=ratios(figures), targets=targets(figures))


def _run(runs: dict[tuple[Any, ...], Run], progress: Progress) -> Results:
    """Run all, two at once, the longest begun first; tell each that has ended."""
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        names: dict[Future[Any], tuple[Any, ...]] = {pool.submit(run): name for name, run in runs.items()}
        results: Results = {}
        for done in as_completed(names):
            results[names[done]] = done.result()
            progress(" ".join(map(str, names[done])), len(results), len(runs))
    return results


def _of_one_tick(plan: Plan) -> Iterator[tuple[tuple[Any, ...], Run]]:
    ticks = partial(tick_rate, times=plan.slow, seconds=plan.seconds)
    for size in plan.sizes:
        yield ("tick", size), partial(ticks, _AS_IT_IS, row_bytes=size)
    for lifted in plan.lifted:
        yield ("lifted", lifted), partial(ticks, lifted)
    yield ("less slow",), partial(tick_rate, _AS_IT_IS, times=plan.slow / 2, seconds=plan.seconds)
    yield ("ingest",), partial(ingest_rate, times=1, seconds=20)


def _of_partitions(plan: Plan, sustained: dict[int, float]) -> Iterator[tuple[tuple[Any, ...], Run]]:
    """Yield the runs of a partition, the longest first."""
    for share in sorted(plan.shares, reverse=True):
        yield from _of_outages(plan, share, sustained[1024])
    for number, total in enumerate(plan.rates):
        one = partial(steady, float(JOBS_PER_PARTITION), times=plan.rate_slow, seconds=plan.rate_seconds)
        yield ("rate", total), partial(one, missed=_MISSED, seed=1 + number)
    run = partial(steady, times=plan.slow, seconds=plan.seconds)
    for load in plan.knee:
        yield ("knee", load), partial(run, load)
    for size in plan.sizes:
        for together in (False, True):
            checked = partial(run, CHECKED * sustained[size], row_bytes=size)
            yield ("checked", size, together), partial(checked, together=together)


def _of_outages(plan: Plan, share: float, sustained: float) -> Iterator[tuple[tuple[Any, ...], Run]]:
    for service in SERVICES:
        times = plan.outage_slow[service]
        yield ("outage", service, share), partial(outage, service, rate=share * sustained, ahead=DAY, times=times)
    if plan.soon and share <= _MOST_SHARE_OF_SOON:
        soon = partial(outage, "dynamodb", ahead=SOON_SECONDS, times=plan.outage_slow["dynamodb"])
        yield ("outage", _SOON, share), partial(soon, rate=share * sustained)


def _sustained(ticks: float, size: int) -> float:
    """Return the jobs a second that a partition sustains: what its ticks hand over, or what its key takes."""
    return min(ticks, Aws().dynamodb.writes_per_key / write_units(size))


def _figures(plan: Plan, results: Results, sustained: dict[int, float]) -> Figures:
    ingest = results["ingest",]
    return {
        "partition": [_of_size(size, results, sustained[size]) for size in plan.sizes],
        "lifted": {name: results["lifted", name] for name in plan.lifted},
        "less_slow": results["less slow",] / results["tick", 1024],
        "ingest": ingest,
        "knee": [results["knee", load] for load in plan.knee],
        "rates": [{"total": total, **_needs(total, ingest), **results["rate", total]} for total in plan.rates],
        "outages": [
            {"share": share, **results["outage", service, share]}
            for service in (*SERVICES, _SOON)
            for share in plan.shares
            if ("outage", service, share) in results
        ],
    }


def _of_size(size: int, results: Results, sustained: float) -> Figures:
    return {
        "row_bytes": size,
        "ticks": results["tick", size],
        "writes": Aws().dynamodb.writes_per_key / write_units(size),
        "sustained": sustained,
        "steady": results["checked", size, False],
        "together": results["checked", size, True],
    }


def _needs(total: int, ingest: float) -> dict[str, float]:
    """Return what a rate needs of what partitions share."""
    dynamodb = Aws().dynamodb
    doubling = dynamodb.doubling_minutes
    return {
        "partitions": -(-total // JOBS_PER_PARTITION),
        "ingest_functions": max(2, -(-int(total * HEADROOM) // int(ingest))),
        "ramp_minutes": minutes_to_reach(total, first=dynamodb.new_table_writes, doubling_minutes=doubling),
    }


def minutes_to_reach(rate: float, *, first: float, doubling_minutes: float) -> float:
    """Return after how many minutes a table that takes `first` units a second, and doubles, takes `rate`.

    >>> minutes_to_reach(16_000, first=4_000, doubling_minutes=30)
    60.0
    """
    return max(0.0, math.log2(rate / first)) * doubling_minutes


def ratios(figures: Figures) -> dict[str, float]:
    told = {f"jobs/s a partition sustains, {each['row_bytes']} B": each["sustained"] for each in figures["partition"]}
    told |= {f"a tick's rate, {name}": rate for name, rate in figures["lifted"].items()}
    told["jobs/s of one ingest function"] = figures["ingest"]
    return told


def targets(figures: Figures) -> tuple[Target, ...]:
    rates, outages = figures["rates"], figures["outages"]
    least = min(each["on_time"] for each in rates)
    lost = sum(each["lost"] for each in (*rates, *outages))
    what = "jobs on time (60 s) at the recommended partitions, one firing missed"
    [sustained] = [each["sustained"] for each in figures["partition"] if each["row_bytes"] == 1024]
    return (
        Target(what=what, got=100 * least, bound=100 * ON_TIME_TARGET, at_most=False, unit="%"),
        Target(what="jobs lost, the outages of an hour included", got=lost, bound=0),
        Target(
            what="what a partition sustains, to what is recommended",
            got=sustained / JOBS_PER_PARTITION,
            bound=HEADROOM,
            at_most=False,
            unit="times",
        ),
    )
