"""How late a job can be: real ticks at every offset of their firings, while some of them fail.

EventBridge Scheduler fires once a minute, somewhere inside the minute: two firings may be almost two minutes apart.
`python -m tests.simulation.lateness` prints the table that stands in docs/reliability.md.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from functools import cache, partial
from itertools import chain, product
from typing import Any, NamedTuple
from unittest.mock import patch

from dueline.config.deployment import Deployment
from dueline.config.environment import longest_send
from dueline.core import tick
from dueline.core.dispatch import Departure
from dueline.core.job import StoredJob
from dueline.core.message import ID
from dueline.core.partitions import Periods
from dueline.core.rows import job_row
from dueline.testing import Delivery, MemoryTable
from tests.builders import EMAILS, NOW, a_job, a_queue
from tests.simulation.faults import CallFault, Crash, FaultInjector
from tests.simulation.scheduler import Process, Scheduler
from tests.system import Core, Stores
from tests.wire import Wire

_DEPLOYMENT = Deployment()
PERIODS = Periods(
    period=timedelta(seconds=_DEPLOYMENT.tick_period),
    lookahead=timedelta(seconds=_DEPLOYMENT.lookahead),
    lease=timedelta(seconds=_DEPLOYMENT.lease),
    longest_send=longest_send(_DEPLOYMENT.lease),
)
TIMEOUT, SENDS_KEPT_BACK = 300, 4
_TICK_SECONDS = TIMEOUT - SENDS_KEPT_BACK * PERIODS.longest_send.total_seconds()
_PERIOD, _LOOKAHEAD, _LEASE = _DEPLOYMENT.tick_period, _DEPLOYMENT.lookahead, _DEPLOYMENT.lease

# One job of a herd stands for a hundred, which are a wave, and takes as long to send as they do.
_SCALE = 100
_SCALED = {name: getattr(tick, name) // _SCALE for name in ("WAVE_JOBS", "SWEPT_JOBS", "CHECKPOINT_JOBS")}
_PAGE_ROWS = 5000 // _SCALE  # DynamoDB's page of 1 MB, in rows of 200 B: a herd fits into one
JOBS_A_SECOND = 20
_HERD = '"herd"'
_MILLISECOND = 0.001

# What is sent at once is less late: rounded up to SQS's second, with the guard.
AT_ONCE = 1.02

_LATEST = 59.999
_CLOSING = 2


class Outcome(Enum):
    """What becomes of a minute's firing."""

    FINE = "fine"
    MISSED = "missed"
    TWICE = "twice"
    DIES_WITH_THE_LEASE = "dies with the lease"
    DIES_BEFORE_A_CHECKPOINT = "dies before a checkpoint"
    DIES_AFTER_A_CHECKPOINT = "dies after a checkpoint"


_FINE = Outcome.FINE
Firing = tuple[float, Outcome]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """What becomes of the firings of successive minutes, and of two more, which are fine, at the end of theirs.

    `missed` more are missed, in any minutes but the first. `herd` is how many seconds of sending are due at once.
    """

    outcomes: tuple[Outcome, ...]
    offsets: Sequence[float] = (*range(0, 60, 10), _LATEST)
    missed: int = 0
    herd: int = 0

    def runs(self) -> Iterator[tuple[Firing, ...]]:
        """Yield who fires when, in seconds from the first, at every offset of each in its minute."""
        for outcomes in _with_missed((*self.outcomes, *[_FINE] * _CLOSING), self.missed):
            acting = [
                (minute * _PERIOD, outcome) for minute, outcome in enumerate(outcomes) if outcome is not Outcome.MISSED
            ]
            choices = [*[self.offsets] * (len(acting) - _CLOSING), *[(_LATEST,)] * _CLOSING]
            for offsets in product(*choices):
                starts = [minute + offset - offsets[0] for (minute, _), offset in zip(acting, offsets, strict=True)]
                yield tuple((round(start, 3), outcome) for start, (_, outcome) in zip(starts, acting, strict=True))


def _with_missed(outcomes: tuple[Outcome, ...], missed: int) -> Iterable[tuple[Outcome, ...]]:
    if not missed:
        return [outcomes]
    fewer = _with_missed(outcomes, missed - 1)
    return dict.fromkeys((*each[:at], Outcome.MISSED, *each[at:]) for each in fewer for at in range(1, len(each)))


class RunResult(NamedTuple):
    """What came of a run: how late a job was at most, in seconds, and how many came twice."""

    lateness: float
    repeats: int


@cache
def results_of(scenario: Scenario) -> Sequence[RunResult]:
    """Simulate all runs of a scenario."""
    with patch.multiple(tick, **_SCALED):
        return [_simulate(firings, scenario.herd) for firings in dict.fromkeys(scenario.runs())]


def _simulate(firings: tuple[Firing, ...], herd: int) -> RunResult:
    jobs = {str(job.id): job for job in _jobs(firings, herd)}
    deliveries = _run(firings, jobs.values())
    first: dict[str, Delivery] = {}
    for delivery in sorted(deliveries, key=lambda each: each.visible):
        first.setdefault(delivery.message.attributes[ID], delivery)
    if lost := jobs.keys() - first.keys():
        raise AssertionError(f"never came: {sorted(lost)}, with firings at {firings}")
    lateness = max((delivery.visible - jobs[id].id.due).total_seconds() for id, delivery in first.items())
    return RunResult(lateness=lateness, repeats=len(deliveries) - len(first))


def _jobs(firings: Sequence[Firing], herd: int) -> Iterator[StoredJob]:
    """Yield jobs due from the first firing's fence to the last one's: all over, and just past every fence between.

    A tick that waits for a lease raises its fence later. The herd is due just past the first fence.
    """
    end = firings[-1 - _CLOSING][0] + _LOOKAHEAD
    fences = (at + wait + _LOOKAHEAD for at, _ in firings[:-_CLOSING] for wait in (0, _LEASE))
    dues = {*range(_LOOKAHEAD, int(end), 30), *(fence + _MILLISECOND for fence in fences), end}
    yield from (_due(due) for due in sorted(dues) if _LOOKAHEAD < due <= end)
    yield from (_due(_LOOKAHEAD + _MILLISECOND, payload=_HERD) for _ in range(herd * JOBS_A_SECOND // _SCALE))


def _due(seconds: float, **overrides: str) -> StoredJob:
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def _run(firings: Sequence[Firing], jobs: Iterable[StoredJob]) -> Sequence[Delivery]:
    """Run each tick as a process of its own; return what they sent."""
    scheduler = Scheduler(NOW, choose=lambda _: 0)
    stores = Stores([a_queue()], table=MemoryTable(page_rows=_PAGE_ROWS), clock=scheduler)
    for job in jobs:
        stores.table.write([job_row(job)])
    for number, (at, outcome) in enumerate(firings):
        for owner in (f"{number}", f"{number} again")[: 2 if outcome is Outcome.TWICE else 1]:
            scheduler.wake(Process(owner, partial(_tick, stores, outcome), scheduler, skew=0).main, after=at)
    scheduler.run()
    return stores.queues["emails"].deliveries


def _tick(stores: Stores, outcome: Outcome, process: Process) -> None:
    wire, injector, faults = Wire(), FaultInjector(process.sleep), _DEATHS.get(outcome, {})
    wire.around = lambda call: injector.execute(call, faults.get(call.name))
    core = Core(stores, clock=process, wire=wire, periods=PERIODS, spread=partial(_spread, process))
    try:
        core.a_tick(EMAILS, owner=process.name, seconds=_TICK_SECONDS).run()
    except Crash:
        return
    assert not faults, f"a tick lived on that {outcome.value}"


def _spread(process: Process, call: Callable[[Any], Any], departures: Iterable[Departure]) -> Iterator[Any]:
    for each in departures:
        process.sleep(sum(job.payload == _HERD for job in each.jobs) * _SCALE / JOBS_A_SECOND)
        yield call(each)


_DEATHS = {
    Outcome.DIES_WITH_THE_LEASE: {"table.page": CallFault.CRASH_BEFORE},
    Outcome.DIES_BEFORE_A_CHECKPOINT: {"table.checkpoint": CallFault.CRASH_BEFORE},
    Outcome.DIES_AFTER_A_CHECKPOINT: {"table.checkpoint": CallFault.CRASH_AFTER},
}


def _dies(outcome: Outcome, *, herd: int = 30) -> Scenario:
    return Scenario(outcomes=(_FINE, outcome, _FINE), offsets=(0, 20, 40, _LATEST), herd=herd)


def _herd(seconds: int) -> Scenario:
    return Scenario(outcomes=(_FINE,) * (3 + seconds // _PERIOD), offsets=(0, _LATEST), herd=seconds)


# Each with no other trouble, and with a firing that is missed.
_MEETS_A_MISSED_FIRING = {
    "a tick dies just after taking the lease": _dies(Outcome.DIES_WITH_THE_LEASE, herd=0),
    "a tick dies before its first checkpoint": _dies(Outcome.DIES_BEFORE_A_CHECKPOINT),
    "a tick dies after its first checkpoint": _dies(Outcome.DIES_AFTER_A_CHECKPOINT),
    "a herd of 90 s": _herd(90),
    "a herd of 200 s": _herd(200),
}
SCENARIOS = {
    "nothing": Scenario(outcomes=(_FINE, _FINE, _FINE)),
    "a firing is missed": Scenario(outcomes=(_FINE, _FINE), missed=1),
    "two firings are missed": Scenario(outcomes=(_FINE, _FINE), missed=2),
    "three firings are missed": Scenario(outcomes=(_FINE, _FINE), missed=3),
    "a firing comes twice at once": Scenario(outcomes=(_FINE, Outcome.TWICE, _FINE)),
} | {
    f"{name}{', and a firing is missed' * missed}": replace(scenario, missed=missed)
    for name, scenario in _MEETS_A_MISSED_FIRING.items()
    for missed in (0, 1)
}


HEADING = ("| what goes wrong | worst lateness |", "|---|---|")


def row_of(name: str) -> str:
    """Return the table's row of a scenario."""
    late = max(run.lateness for run in results_of(SCENARIOS[name]))
    return f"| {name} | {f'{late:.3f} s' if late >= AT_ONCE else f'on time ({late:.3f} s)'} |"


if __name__ == "__main__":
    for line in chain(HEADING, map(row_of, SCENARIOS)):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
