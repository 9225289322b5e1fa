"""The real core in simulated time, over models of DynamoDB, SQS, Lambda and EventBridge Scheduler."""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any, TypeVar

from bench.aws_model import Aws, Latency
from bench.counted import read_units, write_units
from bench.load import Ledger
from dueline.core import instant, rows
from dueline.core.ingest import InboundMessage
from dueline.core.job import JobId, Partition, State, StoredJob, SubmitResult
from dueline.core.message import ID, Message
from dueline.core.ports import BatchFailure, BatchRead, Page
from dueline.core.request import Request
from dueline.core.retry import CALL_ITEMS, LANES, BatchSize, Calls, Patience
from dueline.core.rows import Key, PartitionState, Row
from dueline.core.submit import Breaker
from dueline.errors import RETRYABLE, DuelineError, Throttled, Unavailable
from dueline.testing import MemoryQueue, MemoryTable
from tests.builders import a_job, a_queue
from tests.simulation.lateness import PERIODS
from tests.simulation.scheduler import Process, Scheduler, Task, current, suspend
from tests.system import Core, Stores
from tests.wire import Wire

START = datetime(2026, 1, 1, tzinfo=UTC)
_START_MS = instant.epoch_ms(START)
# As the functions' clients do: botocore's standard mode tries twice, with a wait of up to a second.
_ATTEMPTS = 2
# As dueline/functions/tick.py and dueline/functions/ingest.py have it: what may come after the last send.
_REQUESTS_AFTER_THE_LAST_SEND = 4
_TICK_REQUEST = PERIODS.longest_send.total_seconds()
_DIRECT_HORIZON = timedelta(seconds=890)
Answer = TypeVar("Answer")
Results = Sequence[SubmitResult | DuelineError]
Arrive = Callable[[Message, float], None]


class Time(Scheduler):
    """Simulated time, in which processes are started and wait."""

    def __init__(self) -> None:
        super().__init__(START, choose=lambda _: 0)

    def start(self, body: Callable[[], object], *, after: float = 0.0) -> None:
        self.wake(Task(body), after=after)

    def sleep(self, seconds: float) -> None:
        self.wake(current(), after=seconds)
        suspend()


class Environment(Process):
    """Where a function runs: a clock, a share of a CPU for all its lanes together, and lanes to spread calls over."""

    def __init__(self, time: Time, *, vcpu: float, lanes: int) -> None:
        super().__init__("", lambda _: None, time, skew=0)
        self._vcpu, self._lanes, self._idle_from = vcpu, lanes, 0.0

    def compute(self, seconds: float) -> None:
        """Use so many seconds of a whole vCPU, after those who came before."""
        self._idle_from = max(self._idle_from, self.monotonic()) + seconds / self._vcpu
        self.sleep(self._idle_from - self.monotonic())

    def spread(self, call: Callable[[Any], Any], items: Iterable[Any], *, lanes: int | None = None) -> list[Any]:
        """Make a call for each item, as many at once as there are lanes; return the answers in the items' order."""
        all_items, answers = list(items), dict[int, Any]()
        numbers = iter(range(len(all_items)))

        def lane(_: int) -> None:
            for number in numbers:
                answers[number] = call(all_items[number])

        super().spread(lane, range(min(lanes or self._lanes, len(all_items))))
        return [answers[number] for number in range(len(all_items))]


class Record:
    """The jobs of a partition by their numbers: when each is due, whether its row is written, and when it was sent."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.dues: list[float] = []
        self.written: set[int] = set()
        self.landed: list[tuple[int, float]] = []

    def new_job(self, due: float, *, written: bool = True) -> StoredJob:
        """Return a job that is due at a time, rounded up to the millisecond; its row is written, or yet to be."""
        number, due_ms = len(self.dues), -int(-due * 1000 // 1)
        self.dues.append(due_ms / 1000)
        if written:
            self.written.add(number)
        at, uid = instant.from_epoch_ms(_START_MS + due_ms), f"00000000-0000-4000-8000-{number:012x}"
        return a_job(partition=self.partition, due=at, uid=uid)

    def ledger(self, start: float = 0.0, end: float = float("inf")) -> Ledger:
        """Return the ledger of the written jobs that are due in a span of time."""
        dues = {number: self.dues[number] for number in self.written if start <= self.dues[number] < end}
        return Ledger(dues=dues, landed=self.landed)


class Allowance:
    """So many units a second (a token bucket), of which `burst_seconds` are kept where they are not used."""

    def __init__(self, rate: float, *, burst_seconds: float) -> None:
        self._rate, self._most = rate, rate * burst_seconds
        self._left, self._at = self._most, 0.0

    def take(self, units: float, *, now: float) -> bool:
        """Take all of so many units, or none; return whether they were there."""
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if units > self._left:
            return False
        self._left -= units
        return True


class Storage:
    """The rows of one partition, each as if it had `row_bytes`. What is due after `horizon` is not kept.

    The state table has a key of its own. `table` is what the jobs table takes in all, if that is limited.
    """

    def __init__(self, aws: Aws, *, row_bytes: int, horizon: float, table: Allowance | None = None) -> None:
        self.row_bytes, self.table = row_bytes, table
        self._horizon = instant.text(START + timedelta(seconds=horizon))
        limited = partial(Allowance, burst_seconds=aws.burst_seconds)
        self._writes, self.reads = limited(aws.writes_per_key), limited(aws.reads_per_key)
        self.state_writes, self.state_reads = limited(aws.writes_per_key), limited(aws.reads_per_key)
        self._page_rows = max(1, aws.page_bytes // row_bytes)
        self.state = MemoryTable()
        self._keys: list[str] = []
        self._rows: dict[str, Row] = {}

    def takes(self, row: Row, *, now: float) -> bool:
        """Return whether a row may be written now, and count it if so."""
        units = write_units(self.row_bytes) if str(row["sk"]).endswith(rows.JOB) else 1
        return (self.table is None or self.table.take(units, now=now)) and self._writes.take(units, now=now)

    def put(self, row: Row) -> None:
        """Put a row, whatever its key takes a second."""
        key = str(row["sk"])
        if key < self._horizon:
            if key not in self._rows:
                insort(self._keys, key)
            self._rows[key] = row

    def between(self, after: str, until: str) -> Page:
        start, end = bisect_right(self._keys, after), bisect_right(self._keys, until)
        keys = self._keys[start : min(end, start + self._page_rows)]
        return Page(rows=[self._rows[key] for key in keys], more=end - start > len(keys))

    def forget(self, cursor: str) -> None:
        """Forget the rows that no tick reads again."""
        end = bisect_right(self._keys, cursor)
        for key in self._keys[:end]:
            del self._rows[key]
        del self._keys[:end]


class TablePort:
    """A Table as one process has it. A written row takes an ingest's CPU, a request `most` seconds at most."""

    def __init__(self, region: "Region", *, at: Environment, most: float) -> None:
        self._region, self._at, self._most = region, at, most

    def write(self, written: Sequence[Row], **_: Any) -> list[Row]:
        self._at.compute(self._region.aws.ingest_cpu * len(written))
        return self._answer(self._region.aws.write, lambda: self._write(written))

    def add(self, row: Row, **_: Any) -> Row:
        self.write([row])
        return row

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> BatchRead:
        return self._answer(self._region.aws.read, lambda: self._read(keys))

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        return self._answer(self._region.aws.page, lambda: self._page(self._storage(str(partition)), after, until))

    def acquire_lease(self, partition: Partition, **changed: str) -> PartitionState:
        storage = self._storage(str(partition))
        return self._update(storage, lambda: storage.state.acquire_lease(partition, **changed))

    def checkpoint(self, partition: Partition, *, cursor: str, **changed: str) -> bool:
        storage = self._storage(str(partition))
        kept = self._update(storage, lambda: storage.state.checkpoint(partition, cursor=cursor, **changed))
        if kept:
            storage.forget(cursor)
        return kept

    def _storage(self, key: str) -> Storage:
        return self._region.places[key][0]

    def _update(self, storage: Storage, change: Callable[[], Answer]) -> Answer:
        def answer() -> Answer | None:
            return change() if storage.state_writes.take(1, now=self._at.monotonic()) else None

        return self._answer(self._region.aws.update, answer)

    def _write(self, written: Sequence[Row]) -> list[Row] | None:
        """Put the rows for which there are units left; None if there are none at all."""
        left = []
        for row in written:
            storage = self._storage(str(row["pk"]))
            if storage.takes(row, now=self._at.monotonic()):
                storage.put(row)
            else:
                left.append(row)
        return None if len(left) == len(written) else left

    def _read(self, keys: Sequence[Key]) -> BatchRead | None:
        """Read states, or else cancellations, of which there are none."""
        present: dict[Key, Row] = {}
        for key in keys:
            storage, of_state = self._storage(key[0]), rows.in_state_table(key)
            allowance = storage.state_reads if of_state else storage.reads
            if not allowance.take(1, now=self._at.monotonic()):
                return None
            if of_state:
                present |= storage.state.read([key]).rows
        return BatchRead(rows=present)

    def _page(self, storage: Storage, after: str, until: str) -> Page | None:
        page = storage.between(after, until)
        units = read_units(len(page.rows) * storage.row_bytes)
        return page if storage.reads.take(units, now=self._at.monotonic()) else None

    def _answer(self, latency: Latency, answer: Callable[[], Answer | None]) -> Answer:
        """Answer after a while, at the second attempt if DynamoDB refuses the first. Raises Throttled, Unavailable."""
        random, is_down = self._region.random, False
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._at.sleep(random.random())
            self._at.sleep(min(latency.draw(random), self._most))
            is_down = self._region.is_down("dynamodb")
            answered = None if is_down else answer()
            if answered is not None:
                return answered
        raise Unavailable("the table is down") if is_down else Throttled("the key takes no more")


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuePort:
    """A queue as one process has it. `arrive` gets each message, and when it is visible, in seconds.

    `cpu` is what a sent job takes, in seconds of a vCPU, `most` the longest that a request may take.
    """

    region: "Region"
    arrive: Arrive
    at: Environment
    cpu: float
    most: float

    def send(self, messages: Sequence[Message]) -> list[BatchFailure]:
        start = self.at.monotonic()
        self.at.compute(self.cpu * len(messages))
        self.at.sleep(min(self.region.aws.send.draw(self.region.random), self.most))
        if self.region.is_down("sqs"):
            raise Unavailable("SQS is down")
        # Where all is slowed, a job is late by what its own send takes as it is.
        sent = start + (self.at.monotonic() - start) / self.region.aws.times
        for message in messages:
            self.arrive(message, sent + message.delay)
        return []


@dataclass(kw_only=True, slots=True, eq=False)
class Inbound:
    """A message of the inbound queue, and how often it was received."""

    message: Message
    receives: int = 0


class InboundQueue:
    """The inbound queue: what waits, and what is hidden until its visibility timeout is over."""

    def __init__(self) -> None:
        self.waiting: deque[Inbound] = deque()
        self._hidden: list[tuple[float, int, Inbound]] = []
        self._hides = self._in_flight = 0

    @property
    def held(self) -> int:
        return len(self.waiting) + len(self._hidden) + self._in_flight

    def put(self, message: Message, _: float = 0.0) -> None:
        self.waiting.append(Inbound(message=message))

    def receive(self, most: int, *, now: float) -> list[Inbound]:
        while self._hidden and self._hidden[0][0] <= now:
            self.waiting.append(heappop(self._hidden)[2])
        received = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
        for each in received:
            each.receives += 1
        self._in_flight += len(received)
        return received

    def settle(self, received: Sequence[Inbound], *, again: Sequence[Inbound], visible: float) -> list[Inbound]:
        """Delete what was received, but for what is to come again; return what was deleted."""
        self._in_flight -= len(received)
        for each in again:
            self._hides += 1
            heappush(self._hidden, (visible, self._hides, each))
        kept = set(map(id, again))
        return [each for each in received if id(each) not in kept]


@dataclass(kw_only=True, eq=False)
class Region:
    """AWS with its functions: partitions by their keys, the inbound queue, ticks and ingest.

    `outage` is a service with when it fails. Environments are kept warm. `dispatched` has when each tick ended, and how
    many jobs it sent; `failed_ticks` counts those that did not get as far.
    """

    aws: Aws
    random: Random
    places: Mapping[str, tuple[Storage, Record]]
    outage: tuple[str, float, float] = ("", 0.0, 0.0)
    time: Time = field(default_factory=Time)
    inbound: InboundQueue = field(default_factory=InboundQueue)
    dispatched: list[tuple[float, int]] = field(default_factory=list)
    failed_ticks: int = 0
    _warm: int = 0
    _owners: int = 0

    def record_of(self, id: str) -> Record:
        return self.places[str(JobId.parse(id).partition)][1]

    def note_written(self, id: str) -> None:
        self.record_of(id).written.add(int(id[-12:], 16))

    def is_down(self, service: str) -> bool:
        failing, start, end = self.outage
        return service == failing and start <= self.time.elapsed < end

    def land(self, message: Message, visible: float) -> None:
        id = message.attributes[ID]
        self.record_of(id).landed.append((int(id[-12:], 16), visible))

    def fire(self, partition: Partition, *, missed: int = -1) -> None:
        """Fire ticks for ever, each at any second of its minute, and now and then twice."""
        minute = 0
        while True:
            self.time.sleep((minute + self.random.random()) * self.aws.period - self.time.elapsed)
            if minute != missed and not self.is_down("scheduler"):
                for _ in range(1 + (self.random.random() < self.aws.doubles)):
                    self.time.start(partial(self._tick, partition))
            minute += 1

    def _tick(self, partition: Partition, attempt: int = 1) -> None:
        """Be invoked, and again a minute later where the lease could not be requested."""
        self.time.sleep(self.aws.invocation.draw(self.random))
        if self._warm:
            self._warm -= 1
        else:
            self.time.sleep(self.aws.cold_start.draw(self.random))
        try:
            core, self._owners = DeployedCore(self, most=_TICK_REQUEST), self._owners + 1
            seconds = self.aws.tick_timeout - _REQUESTS_AFTER_THE_LAST_SEND * _TICK_REQUEST
            done = core.a_tick(partition, owner=f"owner {self._owners}", seconds=seconds).run()
            self.dispatched.append((self.time.elapsed, done.dispatched))
        except RETRYABLE:
            self.failed_ticks += 1
            if attempt < self.aws.tick_attempts:
                self.time.start(partial(self._tick, partition, attempt + 1), after=self.aws.retry_seconds)
        self._warm += 1

    def start_pollers(self) -> None:
        """Let SQS's pollers begin, as Lambda's ramp has it."""
        for number in range(self.aws.ingest_functions):
            start = max(0.0, (number + 1 - self.aws.first_pollers) * 60 / self.aws.pollers_a_minute)
            self.time.start(self._poll, after=start + self.random.random() * self.aws.window)

    def _poll(self) -> None:
        """Gather a batch, invoke ingest, and put back what failed, again and again."""
        aws, ingest = self.aws, DeployedCore(self, most=self.aws.ingest_longest_request).an_ingest()
        after_the_last_send = _REQUESTS_AFTER_THE_LAST_SEND * aws.ingest_longest_request
        while True:
            if len(self.inbound.waiting) < aws.batch or self.is_down("sqs"):
                self.time.sleep(aws.window)
            if self.is_down("sqs"):
                continue
            received = self.inbound.receive(aws.batch, now=self.time.elapsed)
            visible = self.time.elapsed + aws.visibility_timeout
            batch = [
                InboundMessage(message_id=str(number), message=each.message, receives=each.receives)
                for number, each in enumerate(received)
            ]
            until = self.time.elapsed + aws.ingest_timeout - after_the_last_send
            failed = ingest.run(batch, until=until).failed if batch else ()
            again = [received[int(message_id)] for message_id in sorted(failed, key=int)]
            for each in self.inbound.settle(received, again=again, visible=visible):
                self.note_written(each.message.attributes[ID])


class DeployedCore(Core):
    """The real core as one function or producer has it, in which a request takes `most` seconds at most."""

    def __init__(self, region: Region, *, most: float) -> None:
        self.region, self.at = region, Environment(region.time, vcpu=region.aws.vcpu, lanes=region.aws.lanes)
        self._port = partial(QueuePort, region=region, at=self.at, most=most)
        queues = [a_queue(name=record.partition.queue) for _, record in region.places.values()]
        table: Any = TablePort(region, at=self.at, most=most)
        stores = Stores(queues, table=table, clock=self.at)
        super().__init__(stores, clock=self.at, wire=Wire(), periods=PERIODS, spread=self.at.spread)
        self.breakers = {name: Breaker(clock=self.at, jitter=region.random.random) for name in self.breakers}

    def level(self, queue: str) -> Callable[[int], Any]:
        """Return what sends to teams' queues; that takes a tick's CPU in any function."""
        return lambda _: self._port(arrive=self.region.land, cpu=self.region.aws.tick_cpu)

    def to(self, queue: MemoryQueue) -> Any:
        if queue is not self.stores.inbound:
            return queue
        return self._port(arrive=self.region.inbound.put, cpu=self.region.aws.ingest_cpu)


class Submitter:
    """A process that submits, with breakers of its own: a function of the API, which `is_buffered`, or a producer."""

    def __init__(self, region: Region, *, is_buffered: bool) -> None:
        self._region, self._is_buffered = region, is_buffered
        self._core = DeployedCore(region, most=region.aws.api_longest_request)
        self.at = self._core.at

    def submit(self, requests: Sequence[Request], *, queue: str) -> Results:
        """Submit jobs as the API's function does; note which are in the table, or sent."""
        self.at.compute(self._region.aws.api_cpu)
        until = self.at.monotonic() + self._region.aws.api_sends_for
        # All ids are made already.
        ids: dict[str, Any] = {"direct_horizon": _DIRECT_HORIZON, "new_uid": lambda: ""}
        results = self._core.submission(queue, **ids, is_buffered=self._is_buffered).run(requests, until=until)
        for each in results:
            if isinstance(each, SubmitResult) and not is_in_buffer(each):
                self._region.note_written(str(each.job.id))
        return results


class Api:
    """The functions of the API: one more, after a cold start, whenever all are busy. `answered` has every result."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._idle: list[Submitter] = []
        self.answered: list[SubmitResult | DuelineError] = []

    def schedule(self, jobs: Sequence[StoredJob]) -> None:
        """Take one request with some jobs of one queue, whose ids their caller made."""
        submitter = self._idle.pop() if self._idle else self._new()
        self.answered += submitter.submit(list(map(_request, jobs)), queue=jobs[0].id.queue)
        self._idle.append(submitter)

    def _new(self) -> Submitter:
        self._region.time.sleep(self._region.aws.cold_start.draw(self._region.random))
        return Submitter(self._region, is_buffered=True)


class Producer:
    """A direct producer, which schedules many jobs in as many lanes as a client has, and as patiently."""

    def __init__(self, region: Region) -> None:
        self._jitter, self._submitter = region.random.random, Submitter(region, is_buffered=False)
        self.answered: list[SubmitResult | DuelineError] = []
        self.ended = 0.0

    def schedule_many(self, jobs: Sequence[StoredJob]) -> None:
        at, submit = self._submitter.at, partial(self._submitter.submit, queue=jobs[0].id.queue)
        calls = Calls(patience=Patience(), clock=at, jitter=self._jitter)
        schedule = partial(calls.run_each, submit, size=BatchSize())
        pieces = [jobs[start : start + CALL_ITEMS] for start in range(0, len(jobs), CALL_ITEMS)]
        for results in at.spread(schedule, [list(map(_request, piece)) for piece in pieces], lanes=LANES):
            self.answered += results
        self.ended = at.monotonic()


def is_in_buffer(result: SubmitResult | DuelineError) -> bool:
    return isinstance(result, SubmitResult) and result.state is State.ACCEPTED


def _request(job: StoredJob) -> Request:
    return Request(id=str(job.id), text=job.payload)
