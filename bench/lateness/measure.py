"""All contenders, one after the other; in a quick run, whose loads are small, beside one another."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.lateness import celery_run, dueline_run, dynein_run, sqs_run
from bench.lateness.figures import CELERY, CELERY_KILLED, DYNEIN, FLOOR, figures_of, ratios, targets
from bench.lateness.plan import Load, Ticks
from bench.lateness.redis_server import found
from bench.lateness.stage import Stage, staged
from bench.part import Bench, Measured

_NEVER = -1
OURS = "Dueline"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loads:
    """What each is given: Dueline a longer flow, which shows a missed and a killed tick."""

    ours: Load
    others: Load
    floor: Load
    ticks: Ticks


FULL = Loads(
    ours=Load(first=6, steady=114, rush=2000),
    others=Load(first=5, steady=25, rush=2000),
    floor=Load(first=5, steady=8, rush=2000),
    ticks=Ticks(period=15, lookahead=60, missed=2, killed=4),
)
_SMALL = Load(first=4, steady=4, rush=100)
QUICK = Loads(
    ours=_SMALL, others=_SMALL, floor=_SMALL, ticks=Ticks(period=15, lookahead=60, missed=_NEVER, killed=_NEVER)
)


def measure(bench: Bench) -> Measured:
    """Measure Dueline and what it is measured against."""
    found()
    loads = QUICK if bench.quick else FULL
    bench.progress("synthesize and deploy", 0, 1)
    with staged(bench.scratch) as stage:
        came = _run(_contenders(stage, loads, bench), beside=(CELERY, DYNEIN) if bench.quick else ())
    own = came.pop(OURS)
    figures = figures_of(own, came, loads.ticks)
    return Measured(figures=figures, ratios=ratios(figures), targets=targets(figures))


def _contenders(stage: Stage, loads: Loads, bench: Bench) -> dict[str, Callable[[], Any]]:
    """Return what measures each, by its name."""
    contenders: dict[str, Callable[[], Any]] = {
        OURS: partial(dueline_run.measure, stage, loads.ours, loads.ticks, bench.progress),
        DYNEIN: partial(dynein_run.measure, stage, loads.others, bench.progress),
        CELERY: partial(celery_run.measure, bench.scratch, loads.others, bench.progress),
    }
    if not bench.quick:
        contenders[CELERY_KILLED] = partial(celery_run.measure_killed, bench.scratch, bench.progress)
        contenders[FLOOR] = partial(sqs_run.measure, stage, loads.floor, bench.progress)
    return contenders


def _run(calls: dict[str, Callable[[], Any]], *, beside: Sequence[str]) -> dict[str, Any]:
    """Call one after the other, and those named `beside` the others; return what each returned."""
    with ThreadPoolExecutor() as pool:
        started = {name: pool.submit(calls[name]) for name in beside}
        done = {name: call() for name, call in calls.items() if name not in beside}
        return done | {name: future.result() for name, future in started.items()}
