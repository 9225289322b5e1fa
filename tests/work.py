"""Builders for tests of workers: a queue in memory that threads may share, and a connection to it."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline.core.clock import SystemClock
from dueline.core.job import Route, StoredJob
from dueline.core.message import Message
from dueline.core.ports import BatchFailure, Clock, QueueMessage
from dueline.core.queue_settings import Backoff, RetryPolicy, WorkSettings
from dueline.errors import QueueNotFound
from dueline.testing import MemoryLocks, MemoryPayloads, MemoryQueue, MemoryTable
from dueline.testing.memory_deployment import MemoryOnce
from dueline.worker.delivery import Event, EventKind, ReceivedJob, ReceivedMessage
from dueline.worker.handlers import Handler, Handlers
from dueline.worker.queue_context import QueueContext
from dueline.worker.worker import Environment
from tests.builders import EMAILS, NOW, a_job, a_queue, an_id

# As if a second came five times as soon: nobody waits for a poll to end.
A_SECOND_OF_POLLS = 0.2
AT_ONCE = RetryPolicy(backoff=Backoff.CONSTANT, attempts=3, delay=1, max_delay=1)


class SharedQueue:
    """A queue in memory that threads share; it answers a long poll as soon as there is something, and sooner if not."""

    def __init__(self, *, visibility_timeout: int = 30, clock: Clock | None = None) -> None:
        self.queue = MemoryQueue(name="emails", clock=clock or SystemClock(), visibility_timeout=visibility_timeout)
        self.requests: list[tuple[str, int]] = []
        self._lock = threading.Lock()

    def send(self, messages: Sequence[Message]) -> list[BatchFailure]:
        with self._lock:
            return self.queue.send(messages)

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[QueueMessage]:
        until = time.monotonic() + wait * A_SECOND_OF_POLLS
        while True:
            with self._lock:
                self.requests.append(("receive", most))
                if arrivals := self.queue.receive(most=most, wait=0, hidden=hidden):
                    return arrivals
            if time.monotonic() >= until:
                return []
            time.sleep(0.005)

    def delete(self, receipts: Sequence[str]) -> list[BatchFailure]:
        with self._lock:
            self.requests.append(("delete", len(receipts)))
            return self.queue.delete(receipts)

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[BatchFailure]:
        with self._lock:
            self.requests.append(("hide", len(receipts)))
            return self.queue.hide(receipts, seconds)

    @property
    def messages(self) -> list[Message]:
        with self._lock:
            return [delivery.message for delivery in self.queue.deliveries]


class Events(list[Event]):
    """What was reported."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def of(self, kind: EventKind) -> list[Event]:
        return [event for event in self if event.kind is kind]


class DeclaredSchedules:
    """The schedules of a queue, as a client has them; each request fails first as often as `faults` has errors."""

    def __init__(self, faults: Sequence[Exception] = ()) -> None:
        self.put_so_far: dict[str, dict[str, Any]] = {}
        self._faults = list(faults)

    def __call__(self, queue: str) -> "DeclaredSchedules":
        assert queue == "emails"
        return self

    def put(self, name: str, **options: Any) -> None:
        if self._faults:
            raise self._faults.pop(0)
        self.put_so_far[name] = options


class Connected:
    """What workers connect to from now on: queues in memory, and what they request of the outside besides.

    `served` has the ports that were requested, and the ages then, `names` the deployments.
    """

    def __init__(self, monkeypatch: Any, connection: QueueContext | None = None, **others: QueueContext) -> None:
        self.connection = connection or a_connection()
        self.connections = {"emails": self.connection, **others}
        self.events: Any = self.connection.report
        self.served: list[tuple[int, dict[str, float]]] = []
        self.names: list[str] = []
        self.closed, self.schedules = 0, DeclaredSchedules()
        monkeypatch.setattr("dueline.worker.receiving.LONG_POLL_SECONDS", 1)
        monkeypatch.setattr("dueline.worker.worker.connect", self.connect)

    def connect(self, name: str, *, session: Any) -> Environment:
        self.names.append(name)
        return Environment(
            connect=self._connect,
            clock=SystemClock(),
            report=self.events,
            serve=self._serve,
            schedules=self.schedules,  # type: ignore[arg-type]
            close=self._close,
        )

    def _connect(self, queue: str) -> QueueContext:
        if queue not in self.connections:
            raise QueueNotFound(f"there is no queue {queue!r}")
        return self.connections[queue]

    def _close(self) -> None:
        self.closed += 1

    @contextmanager
    def _serve(self, port: int, ages: Callable[[], dict[str, float]]) -> Iterator[int]:
        self.served.append((port, ages()))
        yield port

    def send(self, *jobs: StoredJob) -> None:
        assert self.connection.levels[0].send([Message.of(job) for job in jobs]) == []


def a_connection(
    *levels: SharedQueue, clock: Clock | None = None, report: Events | None = None, **overrides: Any
) -> QueueContext:
    """Return a connection to a queue in memory, with these settings, which reports to `report`."""
    options = {
        "queue": a_queue(priorities=max(1, len(levels))),
        "retry": AT_ONCE,
        "max_receives": 10,
        "longest_run": 60,
    }
    inboxes = levels or (SharedQueue(clock=clock),)
    urls = tuple(f"memory://emails/{number}" for number in range(len(inboxes)))
    settings = WorkSettings(**({"urls": urls, "dead_letters": "memory://dead"} | options | overrides))
    return QueueContext(
        settings=settings,
        levels=inboxes,
        dead_letters=SharedQueue(clock=clock),
        table=MemoryTable(),
        read_payload=MemoryPayloads().read,
        once=MemoryOnce(),
        locks=MemoryLocks(),
        clock=clock or SystemClock(),
        report=Events() if report is None else report,
    )


def handlers_of(call: Callable[[ReceivedJob], Any], **options: Any) -> Handlers:
    """Return the handlers of a queue that has this one alone."""
    handler = Handler(queue="emails", call=call, **options)
    return Handlers(queue="emails", by_kind={handler.kind: handler})


def due_now(number: int = 0, *, later: float = 0.0, **overrides: Any) -> StoredJob:
    """Return a job that is due in so many seconds, and whose payload is its number."""
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=later)
    return a_job(payload=str(number), **({"due": due, "route": Route.DIRECT} | overrides))


def a_claim(
    job: StoredJob | None = None,
    *,
    message: Message | None = None,
    receives: int = 1,
    visible: float = 1e9,
    received: float | None = None,
    started: float | None = None,
) -> ReceivedMessage:
    """Return a message as it is received: its job is not yet read."""
    at = time.monotonic() if received is None else received
    sent = message or Message.of(job or a_job(partition=EMAILS))
    arrival = QueueMessage(message=sent, message_id=str(an_id().uid), receipt="r", receives=receives, sent=NOW)
    return ReceivedMessage(queue="emails", arrival=arrival, level=0, received=at, visible=visible, started=started)


def a_received_message(job: StoredJob | None = None, **of_claim: Any) -> ReceivedMessage:
    return a_claim(job, **of_claim).read()
