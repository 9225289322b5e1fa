"""Drain one partition of a herd: the real ticks, at their firings, in virtual time.

The core and its leases are the real ones; the table is in memory, and each call takes the time that `Latency` gives it.
"""

import gc
import math
import random
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from bench.growth.latency import Latency
from bench.units import read_units
from dueline.aws.clients import LANES
from dueline.memory import MemoryQueue, MemoryTable
from dueline.model import rows
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.message import ID, Message
from dueline.model.rows import Row
from dueline.model.units import row_bytes
from dueline.ports import WRITE_ROWS, Depth, Refusal
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.lease import Lease
from dueline.protocol.park import Parking
from dueline.protocol.tick import Tick
from tests.simulation.lateness import PERIODS, SENDS_KEPT_BACK, TIMEOUT
from tests.simulation.turns import Process, Turns
from tests.wire import Call, Wire

QUEUE = "herd"
DUE = datetime(2026, 11, 21, 7, 5, tzinfo=UTC)
# The first firing comes before the herd is within the lookahead.
LEAD = timedelta(minutes=5)
ROW_BYTES = 1024
PAGE_ROWS = 1024 * 1024 // ROW_BYTES
_TICK_SECONDS = TIMEOUT - SENDS_KEPT_BACK * PERIODS.longest_send.total_seconds()
_PERIOD = PERIODS.period.total_seconds()
# What is not sent by then is lost.
_MOST_MINUTES = 24 * 60


@dataclass(kw_only=True, slots=True)
class Drained:
    """What became of a partition.

    `visible` tells when workers see each message, in seconds after due, `first` and `last` when messages were sent;
    `times` how often each job came, by its number; `fired` how many ticks began, `held` how many had the lease.
    """

    visible: "array[float]" = field(default_factory=lambda: array("d"))
    times: "Counter[int]" = field(default_factory=Counter)
    requests: "Counter[str]" = field(default_factory=Counter)
    read_units: int = 0
    fired: int = 0
    held: int = 0
    first: float = math.inf
    last: float = -math.inf
    cpu_seconds: float = 0.0


class Arrivals:
    """The partition's queue, which notes when workers see a message, and whose it is."""

    def __init__(self, drained: Drained, *, turns: Turns, latency: Latency) -> None:
        self._drained, self._turns, self._latency = drained, turns, latency

    def send(self, messages: Sequence[Message]) -> list[Refusal]:
        began = self._turns.elapsed - LEAD.total_seconds()
        sent = began + self._latency.cpu(len(messages)) + self._latency.send
        self._drained.visible.extend([sent + message.delay for message in messages])
        self._drained.times.update([int(message.attributes[ID][-12:], 16) for message in messages])
        self._drained.requests["SendMessageBatch"] += 1
        self._drained.first, self._drained.last = min(self._drained.first, began), max(self._drained.last, sent)
        return []

    def depth(self) -> Depth:
        return Depth(waiting=len(self._drained.visible), in_flight=0, delayed=0)


class Draining:
    """One partition with its share of a herd; `offset` returns a random number from 0 to 1."""

    def __init__(self, partition: Partition, *, latency: Latency, offset: Callable[[], float]) -> None:
        self._partition, self._latency, self._offset = partition, latency, offset
        self._turns = Turns(DUE - LEAD, choose=lambda _: 0)
        self._table = MemoryTable(page_rows=PAGE_ROWS)
        self.drained = Drained()

    def run(self, numbers: Sequence[int]) -> Drained:
        """Drain the jobs of those numbers; return what became of them."""
        self._put(numbers)
        gc.collect()
        gc.freeze()  # A million rows that stay are no business of the ticks' own garbage.
        began = time.process_time()
        self._turns.wake(Process("schedule", partial(self._fire, len(numbers)), self._turns, skew=0).main, after=0)
        self._turns.run()
        self.drained.cpu_seconds = time.process_time() - began
        gc.unfreeze()
        return self.drained

    def _put(self, numbers: Iterable[int]) -> None:
        batch: list[Row] = []
        template = a_row(self._partition)
        before, _, after = str(template["sk"]).partition(uid_of(0))
        for number in numbers:
            batch.append({**template, "sk": f"{before}{uid_of(number)}{after}"})
            if len(batch) == WRITE_ROWS:
                self._table.write(batch)
                batch = []
        self._table.write(batch)

    def _fire(self, jobs: int, process: Process) -> None:
        """Fire a tick somewhere inside each minute, as EventBridge Scheduler does, until all jobs are sent."""
        minute = 0
        while len(self.drained.times) < jobs and minute < _MOST_MINUTES:
            process.sleep((minute + self._offset()) * _PERIOD - process.monotonic())
            self.drained.fired += 1
            self._turns.wake(Process(f"{minute}", self._tick, self._turns, skew=0).main, after=0)
            minute += 1

    def _tick(self, process: Process) -> None:
        wire = Wire()
        wire.around = partial(self._around, process)
        table, until = wire.to("table", self._table), process.monotonic() + _TICK_SECONDS
        lease = Lease(self._partition, table=table, clock=process, periods=PERIODS, owner=process.name, until=until)
        dispatcher = self._dispatcher(process, table)
        ticked = Tick(self._partition, lease=lease, table=table, dispatcher=dispatcher, clock=process).run()
        self.drained.held += ticked.held

    def _dispatcher(self, process: Process, table: Any) -> Dispatcher:
        queue = Arrivals(self.drained, turns=self._turns, latency=self._latency)
        dead_letters = MemoryQueue(name="dead_letters", clock=process)
        return Dispatcher(
            level=lambda _: queue,
            parking=Parking(table=table, dead_letters=dead_letters, clock=process),
            clock=process,
            jitter=lambda: 0.5,
            spread=partial(self._spread, process),
        )

    def _around(self, process: Process, call: Call) -> Any:
        """Let a call of the table take its time, and count it."""
        is_page = call.name == "table.page"
        process.sleep(self._latency.page if is_page else self._latency.write)
        self.drained.requests["Query" if is_page else "UpdateItem"] += 1
        answer = call.do(*call.args)
        if is_page:
            self.drained.read_units += read_units(len(answer.rows) * ROW_BYTES)
        return answer

    def _spread(self, process: Process, call: Callable[[Any], Any], batches: Iterable[Sequence[Job]]) -> list[Any]:
        """Send a wave: as many batches as there are lanes wait for SQS together, but they are computed one by one."""
        answers = []
        for batch in batches:
            answers.append(call(batch))
            process.sleep(self._latency.cpu(len(batch)))
        process.sleep(self._latency.send * math.ceil(len(answers) / LANES))
        return answers


def uid_of(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def a_row(partition: Partition, *, due: datetime = DUE) -> Row:
    """Return the row of the first job, as ingest writes it, of ROW_BYTES."""
    id = JobId(partition=partition, route=Route.TABLE, due=due, uid=uid_of(0))
    least = Job(id=id, payload='""', expires=due + timedelta(days=7))
    row = rows.job_row(least)
    return {**row, "payload": f'"{"x" * (ROW_BYTES - row_bytes(row))}"'}


def offsets(seed: int) -> Callable[[], float]:
    return random.Random(seed).random
