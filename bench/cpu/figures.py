"""The steps, who carries them out, and what is computed of what was measured."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.part import Figures, Measured, Target

SUBMIT, INGEST_FEW, INGEST, TICK, WORKER = "submit", "ingest of 100", "ingest", "tick", "worker"
OURS, BOTO3, HTTP, DYNEIN, BATCHED = "Dueline", "boto3 alone", "HTTP alone", "Dynein", "Dynein batched"
LEAST_JOBS, LEAST_SHARE = 10_000, 0.8


def measured(told: Mapping[str, Any]) -> Measured:
    """Return the figures of what the process told."""
    taken = told["seconds_a_job"]
    jobs, shared = _jobs_a_second(taken), _jobs_a_second(told["shared"])
    against = {step: {who: ratio(each[OURS], each[who]) for who in each if who != OURS} for step, each in taken.items()}
    number = len(taken[TICK][OURS])
    figures = {"jobs_a_second": jobs, "shared": shared, "against": against, "rounds": number, "apart": told["apart"]}
    figures["profiles"] = told["profiles"]
    return Measured(figures=figures, ratios=_repeated(against), targets=_targets(figures))


def _jobs_a_second(taken: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, dict[str, int]]:
    return {step: {who: round(1 / median(seconds)) for who, seconds in each.items()} for step, each in taken.items()}


def ratio(ours: Sequence[float], others: Sequence[float]) -> float:
    """Return how many times as many jobs ours does in the same time, as the median of the rounds.

    >>> ratio([1.0, 1.0, 2.0], [2.0, 2.0, 2.0])
    2.0
    """
    return median(other / own for own, other in zip(ours, others, strict=True))


def _repeated(against: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {
        f"{step}: jobs a CPU second, Dueline to {who}": against[step][who]
        for step in (TICK, INGEST)
        for who in (BOTO3, DYNEIN, BATCHED)
    }


def _targets(figures: Figures) -> tuple[Target, ...]:
    return tuple(target for step in (TICK, INGEST) for target in (_share(figures, step), _speed(figures, step)))


def _share(figures: Figures, step: str) -> Target:
    share = figures["against"][step][BOTO3]
    what = f"CPU: {step}, jobs a CPU second, to its bare boto3 calls"
    return Target(what=what, got=share, bound=LEAST_SHARE, at_most=False, why=_why(figures, step))


def _speed(figures: Figures, step: str) -> Target:
    speed = figures["jobs_a_second"][step][OURS]
    what = f"CPU: {step}, jobs a CPU second"
    return Target(what=what, got=speed, bound=LEAST_JOBS, at_most=False, why=_why(figures, step))


def _why(figures: Figures, step: str) -> str:
    groups = figures["profiles"][step][OURS]["groups"]
    most = sorted(groups.items(), key=lambda group: -group[1])[:2]
    told = " and ".join(f"{name} ({share:.0%})" for name, share in most)
    return f"of its time most goes to {told}"
