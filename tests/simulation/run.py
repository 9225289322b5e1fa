"""One run: a history is written and executed, and its record checked against the promises."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.core.job import JobId
from tests.simulation.choices import Choices, Decided, shrink
from tests.simulation.far_history import FarHistory
from tests.simulation.history import UNTOUCHED, History
from tests.simulation.record import Record, Violation
from tests.simulation.trace import render
from tests.simulation.world import DIRECT_HORIZON, PERIODS, World

# What one world sweeps, another may send at once; and SQS's clocks differ in both.
A_SECOND_OF_SQS = timedelta(seconds=1.04)
BACKLOG = (DIRECT_HORIZON - PERIODS.lookahead).total_seconds()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A promise that a run broke, and the decisions that led to it."""

    promise: str
    what: str
    decided: Decided


def run(*, seed: int | None = None, decided: Decided | None = None) -> tuple[World, Failure | None]:
    """Execute the history of a seed, or of decisions; return its world and what it broke."""
    choices = Choices(seed=seed, decided=decided)
    history = History(choices)
    world = history.write()
    try:
        world.execute()
        if (far := FarHistory(choices)).is_there:
            far.write().execute()
        if history.is_isolated:
            alone = History(Choices(seed=seed, decided=decided), alone=True).write()
            alone.execute()
            compare(world.record, alone.record)
    except Violation as broken:
        return world, Failure(promise=broken.promise, what=str(broken), decided=choices.made)
    except Exception as error:
        return world, Failure(promise="no error", what=repr(error), decided=choices.made)
    return world, None


def first_failure(seeds: Iterable[int]) -> int | None:
    """Return the first of the seeds whose run breaks a promise."""
    return next((seed for seed in seeds if run(seed=seed)[1] is not None), None)


def report_of(seed: int) -> str:
    """Return which promise the run of a seed broke, the trace of its fewest decisions, and how to replay it."""
    failure = run(seed=seed)[1]
    if failure is None:
        return f"seed {seed} breaks no promise"

    def breaks(decided: Decided) -> bool:
        broken = run(decided=decided)[1]
        return broken is not None and broken.promise == failure.promise

    trace, again = trace_of(shrink(failure.decided, breaks)), f"python -m tests.simulation replay {seed}"
    return f"{trace}\n\nseed {seed} breaks a promise: {failure.what}\nreplay it with: {again}"


def trace_of(decided: Decided) -> str:
    """Return the trace of a run by its decisions, as text."""
    choices = Choices(decided=decided)
    history, far = History(choices), FarHistory(choices)
    texts = list[str]()
    for world in [history.write(), *([far.write()] if far.is_there else [])]:
        world.is_traced = True
        try:
            world.execute()
        except Exception as broken:
            world.log("", f"{type(broken).__name__}: {broken}")
        texts.append(render(world.trace))
    return "\n\n".join(texts)


def compare(record: Record, alone: Record) -> None:
    """Raise Violation if a job of the untouched queue is later than it is alone, unless it was ingested late.

    Isolation is promised as long as the inbound backlog is young.
    """
    visible_alone = _visible(alone)
    for id, at in _visible(record).items():
        is_in_time = record.acknowledged.get(id, 0.0) - record.submitted.get(id, 0.0) < BACKLOG
        if is_in_time and at > visible_alone.get(id, at) + A_SECOND_OF_SQS:
            raise Violation("isolation", f"{id} is visible at {at}, alone at {visible_alone[id]}")


def _visible(record: Record) -> dict[JobId, datetime]:
    """Return when each job of the untouched queue was visible first."""
    visible: dict[JobId, datetime] = {}
    for each in record.sent:
        if each.id.queue == UNTOUCHED:
            visible[each.id] = min(each.visible, visible.get(each.id, each.visible))
    return visible
