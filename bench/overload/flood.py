"""A flood of jobs for one partition of a table that takes far fewer, in simulated time, beside jobs that come as ever.

Two queues of one partition each share the table, the inbound queue and its ingest. Both have jobs that wait already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from bench.scale.invocations import Functions, Place, Region
from bench.scale.parameters import Aws
from bench.scale.queues import InboundQueue
from bench.scale.record import Record, share
from bench.scale.runs import ON_TIME_SECONDS
from bench.scale.story import Load
from bench.scale.submissions import Api, Producer
from bench.scale.table import Allowance, Storage
from bench.scale.turns import START, Turns
from dueline.errors import DuelineError
from dueline.model import instant, rows
from dueline.model.job import Job, Partition, State
from dueline.protocol.write_through import NotInTable
from local.summary import percentile

FLOODED, OTHER = Partition(queue="emails", number=0), Partition(queue="invoices", number=0)
TABLE_WRITES = 1000
CALL_JOBS = 100
# How many producers share a flood, each with eight lanes.
PRODUCERS = 4
CALM, HTTP, DIRECT = "no flood", "HTTP", "direct producers"
WAYS = (CALM, HTTP, DIRECT)
OWN, ITS_PARTITION, OTHER_QUEUE = "its own jobs", "its partition's other jobs", "another queue's jobs"
# Jobs that are there already, of each queue, and those that come in over HTTP, one by one, a second.
_WAITING, _COMING = 10.0, 1.0
_FLOOD_AT = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """So many jobs in the flood, which begin to be due in so many seconds, for so long."""

    jobs: int
    due: float = 900.0
    due_for: float = 300.0

    @property
    def seconds(self) -> float:
        """How long all is watched."""
        return _FLOOD_AT + self.due + self.due_for + ON_TIME_SECONDS


class Flood:
    """A region in which a flood comes `by` the HTTP API, by direct producers, or not at all."""

    def __init__(self, by: str, plan: Plan) -> None:
        self._by, self._plan = by, plan
        aws, self.turns, self.random = Aws(), Turns(), Random(1)
        horizon = instant.text(START + timedelta(seconds=10 * plan.seconds))
        table = Allowance(TABLE_WRITES, burst_seconds=aws.dynamodb.burst_seconds)
        self.places = {
            str(partition): Place(
                storage=Storage(aws.dynamodb, row_bytes=1024, horizon=horizon, table=table),
                record=Record(partition=partition),
            )
            for partition in (FLOODED, OTHER)
        }
        self.inbound = InboundQueue()
        self._region = Region(aws=aws, turns=self.turns, random=self.random, inbound=self.inbound, places=self.places)
        self.functions, self.api = Functions(self._region), Api(self._region)
        self.flooding = Api(self._region)
        self.producers = [Producer(self._region) for _ in range(PRODUCERS if by == DIRECT else 0)]
        self.flood, self.waiting = range(0), range(0)
        self.buffer_empty = 0.0

    def run(self) -> None:
        for place in self.places.values():
            self._have_waiting(place)
            self.turns.start(partial(self._come_in, place.record))
            self.turns.start(partial(self._fire, place.record.partition))
        self.waiting = range(min(len(place.record.due) for place in self.places.values()))
        self.functions.start_pollers()
        self.turns.start(self._begin_flood, after=_FLOOD_AT)
        self.turns.start(self._watch)
        self.turns.run(until=self._plan.seconds + 2 * ON_TIME_SECONDS)
        while self.inbound.held and self.turns.elapsed < 5 * self._plan.seconds:
            self.turns.run(until=self.turns.elapsed + ON_TIME_SECONDS)

    def _have_waiting(self, place: Place) -> None:
        """Put rows that were written long ago; what is due within the first lookahead is nobody's."""
        at = self._region.aws.deployed.lookahead + 60.0
        while (at := at + self.random.expovariate(_WAITING)) < self._plan.seconds:
            place.storage.put(rows.job_row(place.record.new_job(at)))

    def _come_in(self, record: Record) -> None:
        load = Load(rate=_COMING)
        while self.turns.elapsed < self._plan.seconds:
            job = record.new_job(load.due(self.turns.elapsed), written=False)
            self.turns.start(partial(self.api.schedule, [job]))
            self.turns.sleep(self.random.expovariate(load.rate))

    def _fire(self, partition: Partition) -> None:
        period = self._region.aws.scheduler.period
        for minute in range(int(self._plan.seconds / period) + 2):
            self.turns.sleep((minute + self.random.random()) * period - self.turns.elapsed)
            self.turns.start(partial(self.functions.tick, partition))

    def _begin_flood(self) -> None:
        """Have all jobs of the flood come in one burst, due over some minutes."""
        record, count = self.places[str(FLOODED)].record, self._plan.jobs if self._by != CALM else 0
        first = len(record.due)
        begin, each_after = self.turns.elapsed + self._plan.due, self._plan.due_for / max(1, count)
        due = (begin + each * each_after for each in range(count))
        jobs = [record.new_job(each, written=False) for each in due]
        self.flood = range(first, first + count)
        if self._by == HTTP:
            for call in _cut(jobs, CALL_JOBS):
                self.turns.start(partial(self.flooding.schedule, call))
        elif self._by == DIRECT:
            for producer, some in zip(self.producers, _cut(jobs, -(-count // PRODUCERS)), strict=True):
                self.turns.start(partial(producer.schedule_many, some))

    def _watch(self) -> None:
        while True:
            self.turns.sleep(1.0)
            if self.inbound.held > _COMING:
                self.buffer_empty = self.turns.elapsed


def flooded(by: str, plan: Plan) -> dict[str, Any]:
    """Let a flood come; return what became of its jobs, and how late they and all others were."""
    run = Flood(by, plan)
    run.run()
    answers = list(run.flooding.answered) + [each for producer in run.producers for each in producer.answered]
    taken_in = max((producer.ended for producer in run.producers), default=run.buffer_empty) - _FLOOD_AT
    return {
        **_answered(answers),
        "refused_of_others": sum(isinstance(each, DuelineError) for each in run.api.answered),
        "in_table_after": taken_in if answers else 0.0,
        "failed_ticks": run.functions.failed_ticks,
        "lost": _lost(run, answers),
        "early": sum(place.record.early for place in run.places.values()),
        "late": {
            OWN: _late(run, FLOODED, run.flood),
            ITS_PARTITION: _late(run, FLOODED, run.waiting),
            OTHER_QUEUE: _late(run, OTHER, run.waiting),
        },
    }


def _answered(answers: Sequence[Job | DuelineError]) -> dict[str, int]:
    refused = sum(isinstance(each, DuelineError) for each in answers)
    buffered = sum(isinstance(each, NotInTable) and each.state is State.ACCEPTED for each in answers)
    return {
        "jobs": len(answers),
        "refused": refused,
        "buffered": buffered,
        "written": len(answers) - refused - buffered,
    }


def _lost(run: Flood, answers: Sequence[Job | DuelineError]) -> int:
    """Return how many jobs were accepted and not sent, though all that was accepted is long due."""
    accepted = sum(not isinstance(each, DuelineError) for each in answers)
    record = run.places[str(FLOODED)].record
    sent = sum(record.visible[number] >= 0 for number in run.flood)
    others = sum(place.record.lost(due_before=run._plan.seconds) for place in run.places.values())
    return max(0, accepted - sent) + others


def _late(run: Flood, partition: Partition, numbers: range) -> dict[str, float]:
    """Return how late jobs of a queue were, or are by now, that were due once the flood had come."""
    record, now = run.places[str(partition)].record, run.turns.elapsed
    since = _FLOOD_AT + run._region.aws.deployed.lookahead
    seen = ((record.due[each], record.visible[each]) for each in numbers)
    late = sorted(max(0.0, (at if at >= 0 else now) - due) for due, at in seen if due >= since)
    if not late:
        return {}
    told = {"p50": percentile(late, 50), "p99": percentile(late, 99), "max": late[-1]}
    return {"jobs": len(late), "on_time": share(late, within=ON_TIME_SECONDS), **told}


def _cut(jobs: Sequence[Job], size: int) -> list[Sequence[Job]]:
    return [jobs[start : start + size] for start in range(0, len(jobs), size)] if jobs else []
