"""One deployment over the ports in memory, on one virtual clock: every part of the real core, wired as on AWS."""

import math
from collections.abc import Sequence
from datetime import timedelta

from dueline import rows
from dueline.cancel import cancel
from dueline.dispatch import Dispatcher
from dueline.errors import DuelineError
from dueline.ingest import Ingest, Ingested, Received
from dueline.job import Job, JobId, Partition, State
from dueline.lease import Lease, Periods
from dueline.memory import MemoryQueue, MemoryTable, VirtualClock
from dueline.message import Message
from dueline.park import Parking
from dueline.queue import QueueSettings
from dueline.status import look_up
from dueline.submit import Request, Submit
from dueline.tick import Tick, Ticked
from tests.builders import EMAILS, NOW, a_queue, uids
from tests.wire import Wire

PERIODS = Periods(
    period=timedelta(seconds=60),
    lookahead=timedelta(seconds=240),
    lease=timedelta(seconds=30),
    longest_send=timedelta(seconds=10),
)
DIRECT_HORIZON = timedelta(seconds=600)
TICK_SECONDS = 170


class System:
    """The names of ports on its wire: table, inbound, rejects, dead_letters, and each queue's own."""

    def __init__(
        self, *settings: QueueSettings, page_rows: int = 1000, direct_horizon: timedelta = DIRECT_HORIZON
    ) -> None:
        self.direct_horizon = direct_horizon
        self.settings = {queue.name: queue for queue in settings or [a_queue()]}
        self.periods = PERIODS
        self.clock, self.wire = VirtualClock(NOW), Wire()
        self.table = self.wire.to("table", MemoryTable(page_rows=page_rows))
        self.inbound, self.rejects, self.dead_letters = map(self._queue, ("inbound", "rejects", "dead_letters"))
        self.queues = {name: self._queue(name) for name in self.settings}
        self.parking = Parking(table=self.table, dead_letters=self._to(self.dead_letters), clock=self.clock)
        self._uids, self._owners, self._acknowledged = uids(), uids(), set[str]()

    def submit(self, *requests: Request, queue: str = "emails") -> list[Job | DuelineError]:
        submit = Submit(
            self.settings[queue],
            own=self._to(self.queues[queue]),
            inbound=self._to(self.inbound),
            direct_horizon=self.direct_horizon,
            clock=self.clock,
            new_uid=lambda: next(self._uids),
        )
        return submit.run(requests, until=self.clock.monotonic() + 10)

    def schedule(self, delay: float, *, queue: str = "emails") -> Job:
        """Submit one job, which must be accepted."""
        (job,) = self.submit(Request(payload={}, delay=delay), queue=queue)
        assert isinstance(job, Job), job
        return job

    def put(self, *jobs: Job) -> None:
        """Put jobs straight into the table, as ingest does long before they are due."""
        for job in jobs:
            self.table.write([rows.job_row(job)])

    def received(self) -> list[Received]:
        """Return what ever reached the inbound queue, from where SQS may bring it again."""
        messages = (delivery.message for delivery in self.inbound.deliveries)
        return [Received(message_id=str(index), message=message) for index, message in enumerate(messages)]

    def waiting(self) -> list[Received]:
        """Return what the inbound queue holds."""
        return [each for each in self.received() if each.message_id not in self._acknowledged]

    def ingest(self, batch: Sequence[Received] | None = None, *, forget: bool = True) -> Ingested:
        """Ingest a batch (all that waits, if none is given), and delete what succeeded, unless SQS forgets to."""
        received = self.waiting() if batch is None else batch
        done = self.an_ingest().run(received, until=math.inf)
        if forget:
            self._acknowledged |= {each.message_id for each in received} - done.failed
        return done

    def an_ingest(self) -> Ingest:
        return Ingest(table=self.table, dispatcher=self.dispatcher, rejects=self._to(self.rejects), clock=self.clock)

    def ingest_message(self, *messages: Message) -> Ingested:
        """Ingest messages that did not come from submit; the first has the id x0."""
        return self.ingest([Received(message_id=f"x{n}", message=each) for n, each in enumerate(messages)])

    def a_tick(self, partition: Partition = EMAILS, *, seconds: float = TICK_SECONDS) -> Tick:
        lease = self.a_lease(partition, seconds=seconds)
        dispatcher = self.dispatcher(partition.queue)
        return Tick(partition, lease=lease, table=self.table, dispatcher=dispatcher, clock=self.clock)

    def tick(self, partition: Partition = EMAILS, *, seconds: float = TICK_SECONDS) -> Ticked:
        return self.a_tick(partition, seconds=seconds).run()

    def a_lease(self, partition: Partition = EMAILS, *, seconds: float = TICK_SECONDS) -> Lease:
        until = self.clock.monotonic() + seconds
        owner = next(self._owners)
        return Lease(partition, table=self.table, clock=self.clock, periods=self.periods, owner=owner, until=until)

    def cancel(self, id: JobId) -> State:
        return cancel(id, table=self.table, now=self.clock.now())

    def look_up(self, id: JobId) -> State:
        return look_up(id, queue=self.settings[id.queue], table=self.table, now=self.clock.now())

    def dispatcher(self, queue: str) -> Dispatcher:
        return Dispatcher(
            queue=self._to(
                self.queues[queue] if queue in self.queues else MemoryQueue(name=queue, clock=self.clock, gone=True)
            ),
            parking=self.parking,
            clock=self.clock,
            jitter=lambda: 0.5,
            precise=queue in self.settings and self.settings[queue].precise,
        )

    def arrived(self, queue: str = "emails") -> list[JobId]:
        """Return the jobs that reached a queue, repeats included."""
        return [delivery.message.job().id for delivery in self.queues[queue].deliveries]

    def parked(self) -> list[JobId]:
        """Return the jobs in the dispatch dead-letter queue."""
        return [delivery.message.job().id for delivery in self.dead_letters.deliveries]

    def cursor(self, partition: Partition = EMAILS) -> str:
        key = rows.state_key(partition)
        return rows.read_state(self.table.read([key]).rows.get(key)).cursor

    def _queue(self, name: str) -> MemoryQueue:
        return MemoryQueue(name=name, clock=self.clock)

    def _to(self, queue: MemoryQueue) -> MemoryQueue:
        tapped: MemoryQueue = self.wire.to(queue.name, queue)
        return tapped
