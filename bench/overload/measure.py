"""The floods, two at once, and what is to hold in them."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from bench.overload.flood import CALM, DIRECT, HTTP, ITS_PARTITION, OTHER_QUEUE, WAYS, Plan, flooded
from bench.part import Bench, Figures, Measured, Target

FULL, QUICK = Plan(jobs=100_000), Plan(jobs=10_000)
# A p99 that a flood does not change; the chance of when ticks fire does.
_UNCHANGED = 1.1


def measure(bench: Bench) -> Measured:
    plan = QUICK if bench.quick else FULL
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        figures = {}
        for number, (by, told) in enumerate(zip(WAYS, pool.map(partial(flooded, plan=plan), WAYS), strict=True)):
            bench.progress(by, number + 1, len(WAYS))
            figures[by] = told
    return Measured(figures=figures, ratios=ratios(figures), targets=targets(figures))


def ratios(figures: Figures) -> dict[str, float]:
    """Return by how much a flood changes the p99 of the lateness of jobs that are not its own."""
    return {
        f"p99 of {whose}, flood over {by}": figures[by]["late"][whose]["p99"] / figures[CALM]["late"][whose]["p99"]
        for by in (HTTP, DIRECT)
        for whose in (ITS_PARTITION, OTHER_QUEUE)
    }


def targets(figures: Figures) -> tuple[Target, ...]:
    floods = [figures[by] for by in (HTTP, DIRECT)]
    lost, failed = (sum(each[name] for each in floods) for name in ("lost", "failed_ticks"))
    http, direct = (each["refused"] + each["refused_of_others"] for each in floods)
    gave_up = "the table throttles for longer than their patience lasts"
    return (
        Target(what="flood: jobs over HTTP that are refused", got=http, bound=0, why="the buffer did not take them"),
        Target(what="flood: jobs of direct producers that give up", got=direct, bound=0, why=gave_up),
        Target(what="flood: jobs that are lost", got=lost, bound=0),
        Target(what="flood: ticks that fail", got=failed, bound=0),
        *(
            Target(what=f"flood: {name}, to none", got=ratio, bound=_UNCHANGED, why="it waits for what the flood uses")
            for name, ratio in ratios(figures).items()
        ),
    )
