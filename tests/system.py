"""One deployment over the ports in memory, and every part of the real core, wired as on AWS."""

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from dueline.core import rows
from dueline.core.cancel import CancelMany, CancelResult, cancelled_among
from dueline.core.dispatch import Dispatcher, Parking
from dueline.core.ingest import InboundMessage, Ingest, IngestResult
from dueline.core.job import JobId, Partition, State, StoredJob, SubmitResult
from dueline.core.listing import JobPage, Span, list_jobs
from dueline.core.message import Message
from dueline.core.move import Mover
from dueline.core.overview import Overview, overview
from dueline.core.partitions import Lease, Periods
from dueline.core.ports import Clock, ParallelMap
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import Request
from dueline.core.reschedule import Reschedule, RescheduleResult
from dueline.core.status import JobStatus, Status, status_of, submitted_statuses
from dueline.core.submit import Breaker, Submit
from dueline.core.table_writer import TableWriter
from dueline.core.tick import Tick, TickResult
from dueline.errors import DuelineError
from dueline.testing import MemoryPayloads, MemoryQueue, MemoryTable, VirtualClock
from tests.builders import EMAILS, NOW, a_queue, uids
from tests.wire import Wire, straight

PERIODS = Periods(
    period=timedelta(seconds=60),
    lookahead=timedelta(seconds=240),
    lease=timedelta(seconds=30),
    longest_send=timedelta(seconds=10),
)
DIRECT_HORIZON = timedelta(seconds=600)
TICK_SECONDS = 170


class Stores:
    """What a deployment keeps: the table, the queues, large payloads, and the settings that queues.yaml gives them."""

    def __init__(self, settings: Sequence[QueueSettings], *, table: MemoryTable, clock: Clock) -> None:
        self.settings = {queue.name: queue for queue in settings}
        self.table = table
        self.payloads = MemoryPayloads()
        self._clock = clock
        self.inbound, self.rejects, self.dead_letters = map(self.queue, ("inbound", "rejects", "dead_letters"))
        self.levels = {
            (name, priority): self.queue(level_name(name, priority))
            for name, settings in self.settings.items()
            for priority in range(1, settings.priorities + 1)
        }
        self.queues = {name: self.levels[name, 1] for name in self.settings}

    def level(self, queue: str, priority: int) -> MemoryQueue:
        """Return the SQS queue of a priority, which is gone if the queue never had it."""
        return self.levels.get((queue, priority)) or self.queue(level_name(queue, priority), gone=True)

    def queue(self, name: str, *, gone: bool = False) -> MemoryQueue:
        return MemoryQueue(name=name, clock=self._clock, gone=gone)


def level_name(queue: str, priority: int) -> str:
    return queue if priority == 1 else f"{queue}_p{priority}"


class Core:
    """The real core as one process has it: by its own clock, and over its own wire.

    The names of ports on the wire: table, payloads, inbound, rejects, dead_letters, and each queue's own.
    """

    def __init__(
        self, stores: Stores, *, clock: Clock, wire: Wire, periods: Periods, spread: ParallelMap = map
    ) -> None:
        self.stores, self.clock, self.wire = stores, clock, wire
        self.periods, self.spread = periods, spread
        self.table: MemoryTable = wire.to("table", stores.table)
        self.payloads: MemoryPayloads = wire.to("payloads", stores.payloads)
        self.breakers = {queue: Breaker(clock=clock, jitter=lambda: 0.5) for queue in stores.settings}
        self.parking = Parking(table=self.table, dead_letters=self.to(stores.dead_letters), clock=clock)

    def to(self, queue: MemoryQueue) -> MemoryQueue:
        return self.wire.to(queue.name, queue)

    def level(self, queue: str) -> Callable[[int], MemoryQueue]:
        """Return what returns a queue's SQS queue of a priority."""
        return lambda priority: self.to(self.stores.level(queue, priority))

    def submission(self, queue: str, *, direct_horizon: timedelta, new_uid: Any, is_buffered: bool = True) -> Submit:
        return Submit(
            self.stores.settings[queue],
            table=self.table,
            payloads=self.payloads,
            inbound=self.to(self.stores.inbound),
            dispatcher=self.dispatcher(queue),
            breaker=self.breakers[queue],
            direct_horizon=direct_horizon,
            new_uid=new_uid,
            is_buffered=is_buffered,
        )

    def submitted_statuses(
        self, results: Sequence[SubmitResult | DuelineError], *, queue: str = "emails", until: float = math.inf
    ) -> list[JobStatus | DuelineError]:
        settings = self.stores.settings[queue]
        return submitted_statuses(
            results, queue=settings, table=self.table, clock=self.clock, until=until, spread=self.spread
        )

    def an_ingest(self) -> Ingest:
        rejects = self.to(self.stores.rejects)
        return Ingest(self.a_route(), rejects=lambda: rejects, is_declared=self.is_declared, jitter=lambda: 0.5)

    def a_route(self) -> TableWriter:
        return TableWriter(table=self.table, dispatcher=self.dispatcher, clock=self.clock, spread=self.spread)

    def is_declared(self, partition: Partition) -> bool:
        settings = self.stores.settings.get(partition.queue)
        return settings is not None and partition.number < settings.partitions

    def a_tick(self, partition: Partition, *, owner: str, seconds: float) -> Tick:
        lease = self.a_lease(partition, owner=owner, seconds=seconds)
        return Tick(lease, dispatcher=self.dispatcher(partition.queue))

    def a_lease(self, partition: Partition, *, owner: str, seconds: float) -> Lease:
        until = self.clock.monotonic() + seconds
        return Lease(partition, table=self.table, clock=self.clock, periods=self.periods, owner=owner, until=until)

    def cancel(self, id: JobId) -> State:
        return self.cancel_job(id).state

    def cancel_job(self, id: JobId) -> CancelResult:
        cancels = CancelMany(queue=self.stores.settings[id.queue], table=self.table, clock=self.clock)
        (result,) = cancels.run([id])
        if isinstance(result, DuelineError):
            raise result
        return result

    def a_reschedule(self, queue: str, *, new_uid: Any) -> Reschedule:
        mover = Mover(table=self.table, inbound=self.to(self.stores.inbound), clock=self.clock)
        return Reschedule(self.stores.settings[queue], mover=mover, payloads=self.payloads, new_uid=new_uid)

    def cancel_many(
        self, ids: Sequence[JobId | DuelineError], *, queue: str = "emails", until: float = math.inf
    ) -> list[CancelResult | DuelineError]:
        settings = self.stores.settings[queue]
        return CancelMany(queue=settings, table=self.table, clock=self.clock, until=until, spread=self.spread).run(ids)

    def cancel_by_keys(self, keys: Sequence[object], *, queue: str = "emails") -> list[CancelResult | DuelineError]:
        settings = self.stores.settings[queue]
        return CancelMany(queue=settings, table=self.table, clock=self.clock, spread=self.spread).run_by_keys(keys)

    def list_jobs(self, queue: str = "emails", **span: Any) -> JobPage:
        settings, now = self.stores.settings[queue], self.clock.now()
        return list_jobs(Span(**span), queue=settings, table=self.table, now=now, spread=self.spread)

    def overview(self, queue: str = "emails") -> Overview:
        dead_letters = self.to(self.stores.dead_letters)
        return overview(
            self.stores.settings[queue],
            table=self.table,
            level=self.level(queue),
            dead_letters=dead_letters,
            lookahead=self.periods.lookahead,
            now=self.clock.now(),
            spread=self.spread,
        )

    def cancelled_among(self, ids: Sequence[JobId]) -> set[JobId]:
        return cancelled_among(ids, table=self.table)

    def look_up(self, id: JobId) -> State:
        return self.status_of(id).state

    def status_of(self, id: JobId) -> Status:
        return self.job_status(id)[1]

    def job_status(self, id: JobId) -> JobStatus:
        return status_of(id, queue=self.stores.settings[id.queue], table=self.table, now=self.clock.now())

    def dispatcher(self, queue: str) -> Dispatcher:
        settings = self.stores.settings.get(queue)
        return Dispatcher(
            level=self.level(queue),
            parking=self.parking,
            clock=self.clock,
            jitter=lambda: 0.5,
            spread=self.spread,
            precise=settings is not None and settings.precise,
        )


class System(Core):
    """A deployment and the one process that is everything in it, on one virtual clock."""

    def __init__(
        self, *settings: QueueSettings, page_rows: int = 1000, direct_horizon: timedelta = DIRECT_HORIZON
    ) -> None:
        clock = VirtualClock(NOW)
        stores = Stores(settings or [a_queue()], table=MemoryTable(page_rows=page_rows), clock=clock)
        super().__init__(stores, clock=clock, wire=Wire(), periods=PERIODS)
        self.clock: VirtualClock = clock
        self.direct_horizon = direct_horizon
        self.settings, self.queues = stores.settings, stores.queues
        self.inbound, self.rejects, self.dead_letters = stores.inbound, stores.rejects, stores.dead_letters
        self._uids, self._owners, self._acknowledged = uids(), uids(), set[str]()

    def submit_each(self, *requests: Request, queue: str = "emails") -> list[SubmitResult | DuelineError]:
        submit = self.submission(queue, direct_horizon=self.direct_horizon, new_uid=lambda: next(self._uids))
        return submit.run(requests, until=self.clock.monotonic() + 10)

    def submit(self, *requests: Request, queue: str = "emails") -> list[StoredJob | DuelineError]:
        results = self.submit_each(*requests, queue=queue)
        return [each.job if isinstance(each, SubmitResult) else each for each in results]

    def schedule(self, delay: float, *, queue: str = "emails") -> StoredJob:
        """Submit one job, which must be accepted."""
        (job,) = self.submit(Request(payload={}, delay=delay), queue=queue)
        assert isinstance(job, StoredJob), job
        return job

    def refused(self, request: Request, kind: type[DuelineError] | None = None, text: str = "") -> DuelineError:
        """Submit one job, which must be refused, by an error of this kind and with this text, if given; return it."""
        (error,) = self.submit(request)
        assert isinstance(error, DuelineError), error
        assert kind in (None, type(error)), repr(error)
        assert text in str(error)
        return error

    def reschedule(self, id: JobId, **to: Any) -> JobId:
        """Move a job to `at` or by `delay`; return the id of the one that took its place."""
        return self.a_reschedule(id.queue, new_uid=lambda: next(self._uids)).run(id, **to).id

    def reschedule_by_key(self, key: str, *, queue: str = "emails", **to: Any) -> RescheduleResult:
        """Move the job of a key to `at` or by `delay`."""
        return self.a_reschedule(queue, new_uid=lambda: next(self._uids)).run(key=key, **to)

    def put(self, *jobs: StoredJob) -> None:
        """Put jobs straight into the table, as ingest does long before they are due."""
        for job in jobs:
            self.table.write([rows.job_row(job)])

    def calls(self) -> list[str]:
        """Return the names of the ports' calls from here on, as they come."""
        names: list[str] = []
        self.wire.around = lambda call: (names.append(call.name), straight(call))[1]
        return names

    def pass_time(self, *, hours: int) -> None:
        """Let hours pass; a look at every half of one is enough of ticks where lateness does not matter."""
        for _ in range(2 * hours):
            self.ingest()
            self.clock.sleep(1800)
            for number in range(self.settings["emails"].partitions):
                self.tick(Partition(queue="emails", number=number))
        self.ingest()

    def received(self) -> list[InboundMessage]:
        """Return what ever reached the inbound queue, from where SQS may bring it again."""
        messages = (delivery.message for delivery in self.inbound.deliveries)
        return [InboundMessage(message_id=str(index), message=message) for index, message in enumerate(messages)]

    def waiting(self) -> list[InboundMessage]:
        """Return what the inbound queue holds."""
        return [each for each in self.received() if each.message_id not in self._acknowledged]

    def ingest(self, batch: Sequence[InboundMessage] | None = None, *, forget: bool = True) -> IngestResult:
        """Ingest a batch (all that waits, if none is given), and delete what succeeded, unless SQS forgets to."""
        received = self.waiting() if batch is None else batch
        done = self.an_ingest().run(received, until=math.inf)
        if forget:
            self._acknowledged |= {each.message_id for each in received} - done.failed
        return done

    def ingest_message(self, *messages: Message) -> IngestResult:
        """Ingest messages that did not come from submit; the first has the id x0."""
        return self.ingest([InboundMessage(message_id=f"x{n}", message=each) for n, each in enumerate(messages)])

    def a_tick(self, partition: Partition = EMAILS, *, owner: str = "", seconds: float = TICK_SECONDS) -> Tick:
        return super().a_tick(partition, owner=owner or next(self._owners), seconds=seconds)

    def tick(self, partition: Partition = EMAILS, *, seconds: float = TICK_SECONDS) -> TickResult:
        return self.a_tick(partition, seconds=seconds).run()

    def a_lease(self, partition: Partition = EMAILS, *, owner: str = "", seconds: float = TICK_SECONDS) -> Lease:
        return super().a_lease(partition, owner=owner or next(self._owners), seconds=seconds)

    def arrived(self, queue: str = "emails", *, priority: int = 1) -> list[JobId]:
        """Return the jobs that reached a queue's SQS queue of a priority, repeats included."""
        return [delivery.message.job().id for delivery in self.stores.level(queue, priority).deliveries]

    def arrived_within(self, *, hours: int) -> list[JobId]:
        """Let hours pass; return the jobs that reached the queue `emails` by then, repeats included."""
        self.pass_time(hours=hours)
        return self.arrived()

    def delays(self) -> list[int]:
        """Return the DelaySeconds with which each job was sent to the queue `emails`."""
        return [delivery.message.delay for delivery in self.queues["emails"].deliveries]

    def lateness(self) -> list[float]:
        """Return how many seconds after it is due each job is visible in the queue `emails`."""
        sent = self.queues["emails"].deliveries
        return [round((each.visible - each.message.job().id.due).total_seconds(), 3) for each in sent]

    def in_the_table(self, queue: str = "emails") -> list[JobId]:
        """Return the jobs that have rows, whatever became of them."""
        numbers = range(self.settings[queue].partitions)
        pages = [
            self.stores.table.page(Partition(queue=queue, number=number), after=rows.FIRST, until="~", limit=10_000)
            for number in numbers
        ]
        kinds = [row for page in pages for row in page.rows if rows.prefix_and_kind(str(row["sk"]))[1] == rows.JOB]
        return [rows.read_job(row).id for row in kinds]

    def parked(self) -> list[JobId]:
        """Return the jobs in the dispatch dead-letter queue."""
        return [delivery.message.job().id for delivery in self.dead_letters.deliveries]

    def cursor(self, partition: Partition = EMAILS) -> str:
        key = rows.state_key(partition)
        return rows.read_state(self.table.read([key]).rows.get(key)).cursor
