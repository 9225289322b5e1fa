"""A flood of jobs for one partition of a table that takes far fewer, in simulated time, beside another queue's jobs."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

from bench.aws_model import Aws
from bench.harness import Figures, Target, chunks
from bench.load import ON_TIME_SECONDS
from bench.simulation import Allowance, Api, Producer, Record, Region, Storage, is_in_buffer
from dueline.core import rows
from dueline.core.job import Partition, SubmitResult
from dueline.errors import DuelineError

FLOODED, OTHER = Partition(queue="emails", number=0), Partition(queue="invoices", number=0)
TABLE_WRITES, CALL_JOBS = 1000, 100
# How many producers share a flood, each with eight lanes.
PRODUCERS = 4
NO_FLOOD, HTTP, DIRECT = "no flood", "HTTP", "direct producers"
OWN, ITS_PARTITION, OTHER_QUEUE = "its own jobs", "its partition's other jobs", "another queue's jobs"
# Jobs that are there already, of each queue, and those that come in over HTTP, one by one, a second.
_WAITING, _COMING = 10.0, 1.0
_FLOOD_AT = 120.0
# A flood does not change a p99; the chance of when ticks fire does.
_UNCHANGED = 1.1


class Flood:
    """A region in which a flood comes `by` the HTTP API, by direct producers, or not at all, in one burst.

    Its jobs begin to be due `due` seconds later, for `due_for` seconds.
    """

    def __init__(self, by: str, *, jobs: int, due: float = 900.0, due_for: float = 300.0) -> None:
        self._jobs, self._by, self._due, self._due_for = 0 if by == NO_FLOOD else jobs, by, due, due_for
        self.seconds = _FLOOD_AT + due + due_for + ON_TIME_SECONDS
        aws = Aws()
        table = Allowance(TABLE_WRITES, burst_seconds=aws.burst_seconds)
        self.places = {
            str(partition): (
                Storage(aws, row_bytes=1024, horizon=10 * self.seconds, table=table),
                Record(partition),
            )
            for partition in (FLOODED, OTHER)
        }
        self.region = Region(aws=aws, random=Random(1), places=self.places)
        self._time, self._random = self.region.time, self.region.random
        self.api, self.flooding = Api(self.region), Api(self.region)
        self.producers = [Producer(self.region) for _ in range(PRODUCERS if by == DIRECT else 0)]
        self.flood, self.waiting, self.buffer_empty = range(0), range(0), 0.0

    def run(self) -> None:
        for storage, record in self.places.values():
            # What is due within the first lookahead is nobody's.
            at = self.region.aws.lookahead + 60.0
            while (at := at + self._random.expovariate(_WAITING)) < self.seconds:
                storage.put(rows.job_row(record.new_job(at)))
            self._time.start(partial(self._come_in, record))
            self._time.start(partial(self.region.fire, record.partition))
        self.waiting = range(min(len(record.dues) for _, record in self.places.values()))
        self.region.start_pollers()
        self._time.start(self._begin, after=_FLOOD_AT)
        self._time.start(self._watch)
        self._time.run(until=self.seconds + 2 * ON_TIME_SECONDS)
        while self.region.inbound.held and self._time.elapsed < 5 * self.seconds:
            self._time.run(until=self._time.elapsed + ON_TIME_SECONDS)

    def _come_in(self, record: Record) -> None:
        while self._time.elapsed < self.seconds:
            job = record.new_job(self._time.elapsed + 900, written=False)
            self._time.start(partial(self.api.schedule, [job]))
            self._time.sleep(self._random.expovariate(_COMING))

    def _begin(self) -> None:
        record = self.places[str(FLOODED)][1]
        first, begin = len(record.dues), self._time.elapsed + self._due
        each_after = self._due_for / max(1, self._jobs)
        jobs = [record.new_job(begin + each * each_after, written=False) for each in range(self._jobs)]
        self.flood = range(first, first + self._jobs)
        if self._by == HTTP:
            for call in chunks(jobs, CALL_JOBS):
                self._time.start(partial(self.flooding.schedule, call))
        elif self._by == DIRECT:
            for producer, some in zip(self.producers, chunks(jobs, -(-self._jobs // PRODUCERS)), strict=True):
                self._time.start(partial(producer.schedule_many, some))

    def _watch(self) -> None:
        while True:
            self._time.sleep(1.0)
            if self.region.inbound.held > _COMING:
                self.buffer_empty = self._time.elapsed


def flooded(by: str, *, jobs: int, **due: float) -> Figures:
    """Let a flood come; return what became of its jobs, and how late they and all others were."""
    run = Flood(by, jobs=jobs, **due)
    run.run()
    answers: Sequence[SubmitResult | DuelineError] = [
        *run.flooding.answered,
        *(each for producer in run.producers for each in producer.answered),
    ]
    refused = sum(isinstance(each, DuelineError) for each in answers)
    buffered = sum(map(is_in_buffer, answers))
    in_table = max((producer.ended for producer in run.producers), default=run.buffer_empty) - _FLOOD_AT
    ledgers = {name: record.ledger(end=run.seconds) for name, (_, record) in run.places.items()}
    # Of those due once the flood had come.
    ours, others = (run.places[str(each)][1].ledger(_FLOOD_AT + run.region.aws.lookahead) for each in (FLOODED, OTHER))
    late = {OWN: ours.of(run.flood), ITS_PARTITION: ours.of(run.waiting), OTHER_QUEUE: others.of(run.waiting)}
    unsent = max(0, len(answers) - refused - len(ours.of(run.flood).times))
    return {
        "jobs": len(answers),
        "refused": refused,
        "buffered": buffered,
        "written": len(answers) - refused - buffered,
        "refused_of_others": sum(isinstance(each, DuelineError) for each in run.api.answered),
        "in_table_after": in_table if answers else 0.0,
        "failed_ticks": run.region.failed_ticks,
        "lost": unsent + sum(len(ledger.lost - set(run.flood)) for ledger in ledgers.values()),
        "early": sum(ledger.summary()["early"] for ledger in ledgers.values()),
        "late": {whose: ledger.summary() if ledger.expected else {} for whose, ledger in late.items()},
    }


def measure(scratch: Path) -> Figures:
    """Let the floods come, two at once."""
    flood, ways = partial(flooded, jobs=100_000), (NO_FLOOD, HTTP, DIRECT)
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        return dict(zip(ways, pool.map(flood, ways), strict=True))


def targets(figures: Figures) -> list[Target]:
    floods, without = {by: figures[by] for by in (HTTP, DIRECT)}, figures[NO_FLOOD]["late"]
    http, direct = (each["refused"] + each["refused_of_others"] for each in floods.values())
    return [
        Target("flood: jobs over HTTP that are refused", http, 0),
        Target("flood: jobs of direct producers that give up", direct, 0),
        Target("flood: jobs that are lost", sum(each["lost"] for each in floods.values()), 0),
        Target("flood: ticks that fail", sum(each["failed_ticks"] for each in floods.values()), 0),
        *(
            Target(
                f"flood: p99 of {whose}, flood over {by}, to none",
                each["late"][whose]["p99"] / without[whose]["p99"],
                _UNCHANGED,
            )
            for by, each in floods.items()
            for whose in (ITS_PARTITION, OTHER_QUEUE)
        ),
    ]
