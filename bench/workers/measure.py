"""One deployment, in which everything is measured one after the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.part import Bench, Measured, Target
from bench.workers.race import race
from bench.workers.rate import keep_a_rate, pause
from tests.e2e.workers.stage import staged

_HEEDED_SECONDS = 5
_LEAST_OF_BARE = 0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much of it: two processes share a `rate` in jobs a second for so many `seconds`; `rounds` of races."""

    rate: int
    seconds: float
    raced: int
    rounds: int


FULL = Plan(rate=50, seconds=30, raced=5000, rounds=3)
QUICK = Plan(rate=50, seconds=12, raced=1000, rounds=1)


def measure(bench: Bench) -> Measured:
    plan, of = QUICK if bench.quick else FULL, 3
    with staged(bench.scratch) as stage:
        bench.progress("two processes share a rate", 0, of)
        begun = keep_a_rate(stage, rate=plan.rate, seconds=plan.seconds)
        bench.progress("a pause, and its end", 1, of)
        paused, resumed = pause(stage)
        bench.progress("a race against a bare loop", 2, of)
        races = [race(stage, jobs=plan.raced) for _ in range(plan.rounds)]
    figures = figures_of(plan, begun=begun, paused=paused, resumed=resumed, races=races)
    return Measured(figures=figures, ratios={"worker to a bare loop": figures["ratio"]}, targets=targets_of(figures))


def figures_of(
    plan: Plan, *, begun: list[float], paused: float, resumed: float, races: list[dict[str, float]]
) -> dict[str, Any]:
    """Return plain figures. Of races the best of each way: whatever else the machine did made it slower."""
    best = {way: round(max(race[way] for race in races)) for way in races[0]}
    fewest, most = windows(begun)
    return {
        "rate": plan.rate,
        "fewest": fewest,
        "most": most,
        "paused": round(paused, 2),
        "resumed": round(resumed, 2),
        **best,
        "ratio": round(best["worker"] / best["bare"], 3),
    }


def windows(begun: list[float], *, seconds: float = 10.0) -> tuple[int, int]:
    """Return the fewest and the most jobs that began in any 10 s while there were jobs to begin.

    >>> windows([0, 1, 2, 3], seconds=2)
    (2, 2)
    """
    last = begun[-1] - seconds
    counts = [sum(at <= each < at + seconds for each in begun) for at in begun if at <= last]
    return min(counts), max(counts)


def targets_of(figures: Mapping[str, Any]) -> tuple[Target, ...]:
    slots, asked = "slots are taken some at a time", "workers ask every few seconds"
    most, fewest = (figures[name] / (figures["rate"] * 10) for name in ("most", "fewest"))
    heeded: dict[str, Any] = {"bound": _HEEDED_SECONDS, "unit": " s", "why": asked}
    return (
        Target(what="rate of two processes, most in 10 s", got=most, bound=1.05, why=slots),
        Target(what="rate of two processes, fewest in 10 s", got=fewest, bound=0.95, at_most=False, why=slots),
        Target(what="a pause takes hold", got=figures["paused"], **heeded),
        Target(what="a resume takes hold", got=figures["resumed"], **heeded),
        Target(
            what="a worker's jobs a second, to a bare loop's",
            got=figures["ratio"],
            bound=_LEAST_OF_BARE,
            at_most=False,
            why="it looks for cancellations, and counts",
        ),
    )
