"""Very many schedules of one queue that all run at nine: how far ahead their runs are made, and how late they are.

Planner, changes of the table and ticks are the real ones; the table is in memory, and time is virtual: each call takes
the time that `Latency` gives it, and what is computed the CPU time that was counted.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heapify, heapreplace
from typing import Any

from bench.growth import herd
from bench.growth.drain import QUEUE, Draining, offsets
from bench.growth.latency import Latency
from bench.part import Figures
from bench.schedules.made import RULES, a_head, waiting_job
from dueline.aws.clients import LANES
from dueline.memory import MemoryQueue, MemoryTable
from dueline.model import instant, rows
from dueline.model.job import Partition
from dueline.model.message import Message
from dueline.model.queue_settings import PLANNER, QueueSettings
from dueline.model.rows import FIRST
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.park import Parking
from dueline.protocol.table_route import TableRoute
from dueline.schedules.head import Head, head_row
from dueline.schedules.occurrence import STEP
from dueline.schedules.plan_step import Received
from dueline.schedules.planner import Planner
from tests.simulation.lateness import PERIODS
from tests.wire import Call, Wire

NINE = datetime(2026, 11, 23, 9, tzinfo=UTC)
ON_TIME_SECONDS = 60
PARTITIONS = (1, 4)
# As the template has it: planning jobs in a batch, and functions at once.
BATCH, AT_ONCE = 10, 10
# Later, ticks would have gone past them, and the planner would send them itself.
_AHEAD = (STEP - PERIODS.lookahead - PERIODS.period).total_seconds()


class Function:
    """A planner function, which has a clock of its own: each call takes its time, those of several lanes at once."""

    def __init__(self, table: MemoryTable, *, latency: Latency, cpu: float) -> None:
        self._latency, self._cpu = latency, cpu
        self._elapsed = 0.0
        wire = Wire()
        wire.around = self._around
        tapped = wire.to("table", table)
        dispatcher = Dispatcher(
            level=lambda _: MemoryQueue(name="none", clock=self, gone=True),
            parking=Parking(table=tapped, dead_letters=MemoryQueue(name="dead", clock=self), clock=self),
            clock=self,
            jitter=lambda: 0.5,
        )
        route = TableRoute(table=tapped, dispatcher=lambda _: dispatcher, clock=self, spread=self._spread)
        self._planner = Planner(table=tapped, route=route, clock=self, spread=self._spread)

    def now(self) -> datetime:
        return NINE - STEP + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self._elapsed += seconds

    def plan(self, heads: Sequence[Head], *, at: float) -> float:
        """Plan a step of each schedule, from so many seconds after their planning jobs were due; return the end."""
        self._elapsed = at + self._cpu * len(heads) / self._latency.vcpu
        batch = [
            Received(message_id=str(number), message=Message.of(waiting_job(head)), first_received=self.now())
            for number, head in enumerate(heads)
        ]
        planned = self._planner.run(batch, until=math.inf)
        if planned.again or planned.submitted.total() != len(heads) or planned.missed.total():
            raise RuntimeError(f"a step went wrong: {planned}")
        return self._elapsed

    def _around(self, call: Call) -> Any:
        self._elapsed += self._latency.write
        return call.do(*call.args)

    def _spread(self, call: Callable[[Any], Any], items: Iterable[Any], /) -> list[Any]:
        """Make calls one by one that wait at the same time, as many as there are lanes."""
        begun, took, answers = self._elapsed, 0.0, []
        for number, item in enumerate(items):
            self._elapsed = begun
            answers.append(call(item))
            took += 0.0 if number % LANES else self._elapsed - begun
        self._elapsed = begun + took
        return answers


def at_nine(schedules: int, *, cpu: float, latency: Latency, tell: Callable[[], None]) -> Figures:
    """Return when so many schedules are planned, and how late their runs are over some partitions."""
    planning = Draining(Partition(queue=PLANNER.name, number=0), latency=latency, offset=offsets(0))
    told = sorted(planning.run(range(schedules)).visible)
    tell()
    ends = _planned(told, cpu=cpu, latency=latency)
    if ends[-1] > _AHEAD:
        raise RuntimeError(f"the last run was made {ends[-1]:.0f} s after its planning job: ticks may be past it")
    tell()
    return {
        "schedules": schedules,
        "planning_jobs": {"first": told[0], "last": told[-1]},
        "ahead": {"most": STEP.total_seconds() - ends[0], "least": STEP.total_seconds() - ends[-1]},
        "herds": [_herd(schedules, partitions=number, latency=latency, tell=tell) for number in PARTITIONS],
    }


def _planned(told: Sequence[float], *, cpu: float, latency: Latency) -> list[float]:
    """Have as many functions as run at once take batches of what they can see; return when each batch was planned."""
    queue, table = _reports(PARTITIONS[-1]), _table()
    heads = [
        a_head(f"report-{number}", RULES["daily"], queue=queue, planned_to=NINE - timedelta(days=1))
        for number in range(len(told))
    ]
    for head in heads:
        table.write([head_row(head)])
    function, idle, ends = Function(table, latency=latency, cpu=cpu), [0.0] * AT_ONCE, []
    heapify(idle)
    for start in range(0, len(told), BATCH):
        batch = heads[start : start + BATCH]
        ends.append(function.plan(batch, at=max(idle[0], told[start + len(batch) - 1]) + latency.send))
        heapreplace(idle, ends[-1])
    return sorted(ends)


def _table() -> MemoryTable:
    table, fence = MemoryTable(), instant.text(NINE - STEP + PERIODS.lookahead)
    for partition in (Partition(queue=PLANNER.name, number=0), *_of_reports()):
        pk, sk = rows.state_key(partition)
        table.write([{"pk": pk, "sk": sk, "fence": fence, "cursor": FIRST}])
    return table


def _reports(partitions: int) -> QueueSettings:
    return QueueSettings(name="reports", partitions=partitions, retention=timedelta(days=7))


def _of_reports() -> list[Partition]:
    return [Partition(queue="reports", number=number) for number in range(PARTITIONS[-1])]


def _herd(jobs: int, *, partitions: int, latency: Latency, tell: Callable[[], None]) -> Figures:
    """Return how late runs are that ticks find due in the same millisecond, in rows of 1 KB."""
    queue = _reports(partitions)
    shares = Counter(
        a_head(f"report-{number}", RULES["daily"], queue=queue, planned_to=NINE).partition.number
        for number in range(jobs)
    )
    drained = []
    for number, share in sorted(shares.items()):
        partition = Partition(queue=QUEUE, number=number)
        first = sum(shares[each] for each in range(number))
        drained.append(Draining(partition, latency=latency, offset=offsets(number)).run(range(first, first + share)))
    tell()
    on_time = sum(second <= ON_TIME_SECONDS for each in drained for second in each.visible)
    return {"partitions": partitions, **herd.of(drained, jobs=jobs), "over_time": [], "on_time": on_time / jobs}
