"""One run: a history, written and lived through, and held against the promises."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.model.job import JobId
from tests.simulation.broken import Broken
from tests.simulation.choices import Choices, Decided
from tests.simulation.history import UNTOUCHED, History
from tests.simulation.record import Record
from tests.simulation.shrink import shrink
from tests.simulation.tell import told
from tests.simulation.world import DIRECT_HORIZON, PERIODS, World

A_SECOND_OF_SQS = timedelta(seconds=1)
BACKLOG = (DIRECT_HORIZON - PERIODS.lookahead).total_seconds()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A promise that a run broke, and the decisions that led to it."""

    promise: str
    what: str
    decided: Decided


def run(*, seed: int | None = None, decided: Decided | None = None) -> tuple[World, Failure | None]:
    """Live through the history of a seed, or of decisions; return its world and what it broke."""
    choices = Choices(seed=seed, decided=decided)
    history = History(choices)
    world = history.write()
    try:
        _live_through(world)
        if history.climate.isolated:
            alone = History(Choices(seed=seed, decided=decided), alone=True).write()
            _live_through(alone)
            compare(world.record, alone.record)
    except Broken as broken:
        return world, Failure(promise=broken.promise, what=str(broken), decided=choices.made)
    except Exception as error:
        return world, Failure(promise="no error", what=repr(error), decided=choices.made)
    return world, None


def first_failure(seeds: Iterable[int]) -> int | None:
    """Return the first of the seeds whose run breaks a promise."""
    return next((seed for seed in seeds if run(seed=seed)[1] is not None), None)


def shrunk(failure: Failure) -> Decided:
    """Return the fewest decisions found that break the same promise."""

    def breaks(decided: Decided) -> bool:
        broken = run(decided=decided)[1]
        return broken is not None and broken.promise == failure.promise

    return shrink(failure.decided, breaks)


def report_of(seed: int, *, whole: bool = False) -> str:
    """Return what the run of a seed broke, how it came to that, and how to see it again."""
    failure = run(seed=seed)[1]
    if failure is None:
        return f"seed {seed} breaks no promise"
    decided = failure.decided if whole else shrunk(failure)
    again = f"python -m tests.simulation replay {seed}"
    return f"{trace_of(decided)}\n\nseed {seed} breaks a promise: {failure.what}\nreplay it with: {again}"


def trace_of(decided: Decided) -> str:
    """Return the trace of decisions, as one reads it."""
    world = History(Choices(decided=decided)).write()
    world.is_traced = True
    try:
        _live_through(world)
    except Exception as broken:
        world.tell("", f"{type(broken).__name__}: {broken}")
    return told(world.trace)


def _live_through(world: World) -> None:
    world.run()
    world.calm_down()
    world.check()


def compare(record: Record, alone: Record) -> int:
    """Hold the untouched queue's lateness against what it is alone; return how many jobs this could be done for.

    Those are the ones that were ingested in time: isolation is promised as long as the inbound backlog is young.
    """
    seen, seen_alone = _seen(record), _seen(alone)
    in_time = [id for id in seen if record.acknowledged.get(id, 0.0) - record.submitted.get(id, 0.0) < BACKLOG]
    both = [id for id in in_time if id in seen_alone]
    for id in both:
        if seen[id] > seen_alone[id] + A_SECOND_OF_SQS:
            raise Broken("isolation", f"{id} is visible at {seen[id]}, alone at {seen_alone[id]}")
    return len(both)


def _seen(record: Record) -> dict[JobId, datetime]:
    seen: dict[JobId, datetime] = {}
    for each in record.sent:
        if each.id.queue == UNTOUCHED:
            seen[each.id] = min(each.visible, seen.get(each.id, each.visible))
    return seen
