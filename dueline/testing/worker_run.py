"""Runs of workers and Lambda handlers over a deployment in memory: one job at a time, in the caller's thread."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from dueline import otel
from dueline.core.message import BATCH_MESSAGES
from dueline.errors import QueueNotFound
from dueline.testing.memory_queue import MemoryQueue
from dueline.testing.received import event_of
from dueline.worker.claims import Claims
from dueline.worker.delivery import ReceivedMessage
from dueline.worker.events import Event, EventKind, Report
from dueline.worker.execution import Callbacks, HandlerRunner, Trace
from dueline.worker.handlers import Handlers
from dueline.worker.lambda_consumer import Consumer, address_of
from dueline.worker.limits import RateLimiter
from dueline.worker.queue_context import QueueContext
from dueline.worker.queue_worker import Item, Pool, Processor
from dueline.worker.receiving import Receiver

_OUTCOMES = {
    EventKind.SUCCEEDED: "succeeded",
    EventKind.RETRIED: "retried",
    EventKind.UNHANDLED: "unhandled",
    EventKind.FAILED: "failed",
    EventKind.SKIPPED: "cancelled",
    EventKind.OVERLAPPED: "overlapped",
}
_REST_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What became of a job that was received: its `outcome`, and the `error` of its handler with the `reason`, if any.

    `succeeded`; `retried`, after `delay` seconds; `failed`: it is in the dead-letter queue; `unhandled`: it has no
    handler, and is retried; `cancelled`; `overlapped`: another job of its schedule has not ended. `at` is when, in
    virtual time.
    """

    outcome: str
    queue: str
    id: str
    kind: str | None
    attempt: int
    at: datetime
    error: str = ""
    reason: str = ""
    delay: int | None = None


def noting(attempts: list[Attempt], *, now: Callable[[], datetime]) -> Report:
    """Return what notes the attempts among the events of a worker."""

    def note(event: Event) -> None:
        if outcome := _OUTCOMES.get(event.kind):
            of: dict[str, Any] = {"queue": event.queue, "id": event.job, "kind": event.job_kind or None}
            of |= {"attempt": event.attempt, "error": event.error, "reason": event.reason, "delay": event.delay}
            attempts.append(Attempt(outcome=outcome, at=now(), **of))

    return note


def noting_errors(errors: list[BaseException]) -> Trace:
    """Return what opens spans around handlers, as on AWS, and notes what they raise, but for Retry and Discard."""

    @contextmanager
    def trace(*args: Any, expected: tuple[type[BaseException], ...], **about: Any) -> Iterator[None]:
        with otel.handling(*args, expected=expected, **about):
            try:
                yield
            except BaseException as error:
                if not isinstance(error, expected):
                    errors.append(error)
                raise

    return trace


class _ClaimsAtOnce(Claims):
    """Claims whose acknowledgements are sent as each message is settled: there are no threads that do so later."""

    def _settle(self, claim: ReceivedMessage, hidden: int | None, *, returns: bool = False) -> None:
        super()._settle(claim, hidden, returns=returns)
        if claim.ack is not None:
            claim.ack = replace(claim.ack, at=self._now())
        while self.send_next():
            pass


class QueueRun:
    """One queue of a worker, with the worker's own parts but without its threads. `loop` runs coroutine functions."""

    def __init__(
        self,
        handlers: Handlers,
        context: QueueContext,
        *,
        levels: Sequence[MemoryQueue],
        loop: asyncio.AbstractEventLoop,
        trace: Trace,
        callbacks: Callbacks,
    ) -> None:
        context.check()
        handlers.check(context.settings)
        self._context, self._levels = context, levels
        runner = HandlerRunner(handlers, context, jitter=lambda: 0.5, loop=loop, trace=trace, callbacks=callbacks)
        self._limiter = RateLimiter(context)
        self._claims = _ClaimsAtOnce(context, concurrency=BATCH_MESSAGES)
        self._pool = Pool[Item](1, name=context.queue, clock=context.clock)
        self._processor = Processor(context, runner, pool=self._pool, claims=self._claims, limiter=self._limiter)
        self._receiver = Receiver(context)

    def step(self) -> bool:
        """Process what one request receives; return whether to go on: not where nothing is due, or none may run."""
        self._limiter.read()
        if not (self._limiter.is_open and any(level.depth().waiting for level in self._levels)):
            return False
        if most := self._limiter.most():
            claims = self._receiver.receive(most=most)
            self._claims.add(claims)
            self._processor.process(claims)
            self._process_all()
        else:
            # Its rate lets no job begin yet.
            self._context.clock.sleep(_REST_SECONDS)
        return True

    def _process_all(self) -> None:
        while items := sorted(self._pool.drain(), key=itemgetter(0)):
            for at, item in items[1:]:
                self._pool.put(item, at=at)
            at, first = items[0]
            self._context.clock.sleep(max(0.0, at - self._context.clock.monotonic()))
            self._processor.process(first)


class LambdaRun:
    """A queue as the event source of a Lambda handler, which is invoked with up to ten messages at a time."""

    def __init__(self, invoke: Callable[[dict[str, Any]], Any], levels: Sequence[MemoryQueue]) -> None:
        self._invoke, self._levels = invoke, levels

    def step(self) -> bool:
        """Invoke the handler with what one level has; delete what it does not return. Return whether there was any."""
        for level in self._levels:
            if arrivals := level.receive(most=BATCH_MESSAGES, wait=0):
                answer = self._invoke(event_of(arrivals, name=level.name))
                failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
                level.delete([each.receipt for each in arrivals if each.message_id not in failed])
                return True
        return False


def connected(
    consumer: Consumer, connect: Callable[[str], QueueContext], *, trace: Trace
) -> Callable[[dict[str, Any]], Any]:
    """Return a Lambda handler over the queues that `connect` returns, in place of those on AWS."""

    def invoke(event: dict[str, Any]) -> Any:
        _, queue, _ = address_of(event["Records"][0]["eventSourceARN"])
        return consumer.connected(lambda *_: connect(queue), trace=trace)(event, None)

    return invoke


def the_only(queues: list[str]) -> str:
    """Return the only queue that there is. Raises QueueNotFound."""
    if len(queues) != 1:
        raise QueueNotFound(f"the deployment has {len(queues)} queues: name the one that the handler is for, queue=")
    return queues[0]
