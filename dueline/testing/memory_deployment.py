"""A deployment in memory: the core over ports in memory, and what its functions do when their time has come."""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar, cast

from dueline.config.deployment import Deployment
from dueline.config.environment import ApiSettings, longest_send
from dueline.config.registry import Registry
from dueline.core import instant, rows
from dueline.core.core_deployment import CoreDeployment
from dueline.core.dispatch import Dispatcher
from dueline.core.ingest import InboundMessage, Ingest
from dueline.core.job import Partition
from dueline.core.message import BATCH_MESSAGES, DUE, Message
from dueline.core.partitions import Lease, Periods
from dueline.core.ports import BatchFailure
from dueline.core.queue_settings import PLANNER, QueueSettings
from dueline.core.table_writer import TableWriter
from dueline.core.tick import Tick
from dueline.schedules.planner import Planner, PlanningMessage
from dueline.testing import Delivery, MemoryLocks, MemoryPayloads, MemoryQueue, MemoryTable, VirtualClock
from dueline.worker.delivery import Interrupted, Report
from dueline.worker.queue_context import QueueContext

T = TypeVar("T")


@dataclass(kw_only=True)
class RecordedQueue(MemoryQueue):
    """An SQS queue in memory that shows each job when it is due, and remembers each message that was ever sent to it.

    SQS itself counts in whole seconds: on AWS, a job is visible up to a second later.
    """

    history: list[Delivery] = field(default_factory=list)

    def send(self, messages: Sequence[Message]) -> list[BatchFailure]:
        count = len(self.deliveries)
        refusals = super().send(messages)
        self.deliveries[count:] = sent = [_visible_when_due(each) for each in self.deliveries[count:]]
        self.history += sent
        return refusals


def _visible_when_due(delivery: Delivery) -> Delivery:
    if delivery.message.delay == 0:
        return delivery
    return replace(delivery, visible=min(delivery.visible, instant.parse(delivery.message.attributes[DUE])))


class MemoryOnce:
    """Remembers which jobs had their effect."""

    def __init__(self) -> None:
        self.done: dict[str, bool] = {}

    def __call__(self, key: str, effect: Callable[[], None]) -> None:
        if key in self.done:
            if self.done[key]:
                return
            raise Interrupted
        self.done[key] = False
        try:
            effect()
        except Exception:
            del self.done[key]
            raise
        self.done[key] = True


class _Atomic:
    """A port whose calls are made one at a time: clients and handlers are in threads."""

    def __init__(self, port: object, lock: RLock) -> None:
        self._port, self._lock = port, lock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._port, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return value(*args, **kwargs)

        return call


class MemoryDeployment(CoreDeployment):
    """The deployment that `config` describes, in memory. Its time starts at `start`, and moves on demand.

    It takes the place of what clients read of a deployment's settings, too.
    """

    clock: VirtualClock

    def __init__(self, config: Deployment, *, start: datetime) -> None:
        super().__init__(jitter=lambda: 0.5)
        self.config, self.clock, self.spread = config, VirtualClock(start), map
        self.registry = Registry({each.name: each for each in config.queue_settings()})
        self._lock = RLock()
        self._table, self._payloads = self._atomic(MemoryTable(page_rows=sys.maxsize)), self._atomic(MemoryPayloads())
        self._queues: dict[str, RecordedQueue] = {}
        self._once: defaultdict[str, MemoryOnce] = defaultdict(MemoryOnce)
        self._locks: defaultdict[str, MemoryLocks] = defaultdict(MemoryLocks)
        self._first_received: dict[str, datetime] = {}
        self._partitions = [*self.registry.partitions(), *PLANNER.all_partitions()]
        self.settle()

    @property
    def table(self) -> MemoryTable:
        return self._table

    @property
    def payloads(self) -> MemoryPayloads:
        return self._payloads

    @property
    def inbound(self) -> RecordedQueue:
        return self._queue(self.config.names.inbound)

    @property
    def parked(self) -> RecordedQueue:
        return self._queue(self.config.names.dispatch_dlq)

    def team_queue(self, queue: str, priority: int = 1) -> RecordedQueue:
        levels = PLANNER.priorities if queue == PLANNER.name else self.registry.queues[queue].priorities
        return self._queue(self.config.names.queue(queue, priority), gone=priority > levels)

    def dead_letter_queue(self, queue: str) -> RecordedQueue:
        return self._queue(self.config.names.queue_dlq(queue))

    def levels(self, queue: str) -> list[RecordedQueue]:
        """Return the SQS queues of a queue, the most urgent first. Raises QueueNotFound."""
        return [self.team_queue(queue, level + 1) for level in range(self.queue(queue).priorities)]

    # What a deployment publishes of its settings.
    def queue(self, name: str) -> QueueSettings:
        return self.registry.queue(name)

    refresh = queue

    def queues(self) -> list[QueueSettings]:
        return sorted(self.registry.queues.values(), key=lambda each: each.name)

    def settings(self) -> ApiSettings:
        config = self.config
        of: dict[str, Any] = {"direct_horizon": config.direct_horizon, "lookahead": config.lookahead}
        return ApiSettings(deployment=config.name, queue_urls="memory://", payloads="payloads", **of)

    def connect(self, queue: str, *, report: Report) -> QueueContext:
        """Return what a worker needs of a queue. Raises QueueNotFound."""
        levels, dead_letters = self.levels(queue), self.dead_letter_queue(queue)
        urls = [each.name for each in levels]
        return QueueContext(
            settings=self.config.work_settings(self.queue(queue), urls=urls, dead_letters=dead_letters.name),
            levels=tuple(levels),
            dead_letters=dead_letters,
            table=self.table,
            read_payload=self.payloads.read,
            once=self._once[queue],
            locks=self._locks[queue],
            clock=self.clock,
            report=report,
        )

    def route(self) -> TableWriter:
        return TableWriter(table=self.table, dispatcher=self._dispatcher, clock=self.clock)

    def advance_to(self, end: datetime) -> None:
        """Move time on, and do at each instant what the functions of a deployment do then."""
        self.settle()
        while (at := min(self.times_ahead(), default=end)) < end:
            self.clock.move_to(at)
            self.settle()
        self.clock.move_to(end)
        self.settle()

    def settle(self) -> None:
        """Do what the functions do at this instant: ingest, plan, and dispatch what is due within the lookahead."""
        with self._lock:  # one thread does so at a time: two ticks of a partition would have one owner
            while self._ingest() or self._plan():
                pass
            for partition in self._partitions:
                self._tick(partition)
            if any(each.visible <= self.clock.now() for each in self._planning.deliveries):
                self.settle()

    @cached_property
    def _ingestion(self) -> Ingest:
        return Ingest(
            self.route(),
            rejects=lambda: self._queue(self.config.names.inbound_dlq),
            is_declared=self._partitions.__contains__,
            jitter=lambda: 0.5,
        )

    @cached_property
    def _lookahead(self) -> timedelta:
        return timedelta(seconds=self.config.lookahead)

    @property
    def _planning(self) -> RecordedQueue:
        return self.team_queue(PLANNER.name)

    def times_ahead(self) -> Iterator[datetime]:
        """Yield when something is to be done next."""
        now = self.clock.now()
        times = [each.visible for each in self._planning.deliveries]
        due = [due - self._lookahead for each in self._partitions if (due := self._next_due(each))]
        yield from (at for at in (*times, *due) if at > now)

    def _next_due(self, partition: Partition) -> datetime | None:
        """Return when the first job is due that no tick has read."""
        key = rows.state_key(partition)
        cursor = rows.read_state(self.table.read([key]).rows.get(key)).cursor
        ahead = self.table.page(partition, after=cursor, until="~").rows
        keys = (rows.prefix_and_kind(str(row["sk"])) for row in ahead)
        return next((instant.parse(prefix.partition("#")[0]) for prefix, kind in keys if kind == rows.JOB), None)

    def _tick(self, partition: Partition) -> None:
        config = self.config
        periods = Periods(
            # No time for sweeps, which wait for the clock: time stands still here, and queues show jobs when due.
            period=timedelta(0),
            lookahead=self._lookahead,
            lease=timedelta(seconds=config.lease),
            longest_send=longest_send(config.lease),
        )
        # Always the same owner: another one would wait for the lease of the tick before.
        lease = Lease(partition, table=self.table, clock=self.clock, periods=periods, owner="memory", until=math.inf)
        Tick(lease, dispatcher=self._dispatcher(partition.queue)).run()

    def _plan(self) -> bool:
        arrivals, now = self._planning.receive(most=BATCH_MESSAGES, wait=0), self.clock.now()
        batch = [
            PlanningMessage(
                message_id=each.message_id,
                body=each.message.body,
                first_received=self._first_received.setdefault(each.message_id, now),
            )
            for each in arrivals
        ]
        again = Planner(self.route(), until=math.inf).run(batch).again if batch else frozenset()
        self._planning.delete([each.receipt for each in arrivals if each.message_id not in again])
        return bool(arrivals)

    def _ingest(self) -> bool:
        """Ingest what is inbound: moves to within the lookahead, as the table takes all that is written."""
        arrivals = self.inbound.receive(most=BATCH_MESSAGES, wait=0)
        if arrivals:
            batch = [InboundMessage(message_id=each.message_id, message=each.message) for each in arrivals]
            self._ingestion.run(batch, until=math.inf)
            self.inbound.delete([each.receipt for each in arrivals])
        return bool(arrivals)

    def _dispatcher(self, queue: str) -> Dispatcher:
        return self.dispatcher(queue, precise=self.registry.is_precise(queue))

    def _queue(self, name: str, *, gone: bool = False) -> RecordedQueue:
        with self._lock:
            if name not in self._queues:
                self._queues[name] = self._atomic(RecordedQueue(name=name, clock=self.clock, gone=gone))
        return self._queues[name]

    def _atomic(self, port: T) -> T:
        return cast("T", _Atomic(port, self._lock))
