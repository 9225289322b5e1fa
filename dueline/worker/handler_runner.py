"""Run the handler for one job, and decide what happens to the job then."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dueline.errors import RETRYABLE
from dueline.lookup.outcome import Outcome, note_outcome
from dueline.model.job import State
from dueline.model.trace import TraceContext
from dueline.worker.function import check_function, check_returned
from dueline.worker.overlap import ANOTHER_RUNS, Overlap
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import Lateness, ReceivedJob, ReceivedMessage
from dueline.worker.verdict import Again, Dead, Discard, Done, Held, Interrupted, Retry, Skipped, Verdict, verdict_on
from dueline.worker.watch.event import Event, Kind, Report, trouble


class Trace(Protocol):
    """Opens a span around a handler."""

    def __call__(
        self,
        job_trace: TraceContext | None,
        *,
        queue: str,
        job_id: str,
        attempt: int,
        expected: tuple[type[BaseException], ...],
    ) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """A function that processes the jobs of a queue; with `once`, each job has its effect at most once.

    At most `concurrency` jobs run at a time, by default as many as the worker's own setting allows.
    """

    queue: str
    call: Callable[[ReceivedJob], Any]
    once: bool = False
    concurrency: int | None = None

    def __post_init__(self) -> None:
        check_function(self.call, queue=self.queue)


class _NotBegun(Exception):
    """AWS failed before a job's handler could begin. It is no failure of the job."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.held = Held(error=type(fault).__name__, reason=f"it could not begin, and is held: {fault}")


class HandlerRunner:
    """Runs a queue's handler for one job at a time, and decides by how it ended what happens to the job.

    `loop` runs a handler that is a coroutine function; `jitter` returns 0 to 1.
    """

    def __init__(
        self,
        handler: Handler,
        connection: QueueConnection,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        report: Report,
        trace: Trace,
        jitter: Callable[[], float],
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._loop = loop
        self._report = report
        self._trace = trace
        self._overlap = Overlap(connection, report=report)
        self._jitter = jitter

    def run(self, received: ReceivedMessage) -> Verdict:
        """Run the handler, record the outcome if the queue tracks them, and return what happens to the job.

        A job whose schedule lets one run at a time is skipped while another one has not ended.
        """
        verdict = self._overlap.run(received, self._run)
        if isinstance(verdict, Skipped):
            now = self._connection.clock.now()
            self._note_outcome(received, State.SKIPPED, started=now, ended=now)
            self._report(received.event(Kind.OVERLAPPED, reason=ANOTHER_RUNS))
        return verdict

    def _run(self, received: ReceivedMessage) -> Verdict:
        clock = self._connection.clock
        behind, started, since = self._connection.behind(), clock.now(), clock.monotonic()
        held = self._connection.settings.queue.precise
        lateness = Lateness.of(received.due, now=started, behind=behind, held=held)
        fields: dict[str, Any] = {"queue": received.queue, "job": received.id, "attempt": received.attempt}
        fields |= {"lateness": lateness.at_least, "lateness_at_most": _finite_or_none(lateness.at_most)}
        self._report(Event(kind=Kind.STARTED, **fields))
        self._note_outcome(received, State.RUNNING, started=started)
        verdict = self._verdict(received, lateness)
        self._note_outcome(
            received, _outcome_state(verdict), started=started, ended=clock.now(), error=getattr(verdict, "error", None)
        )
        duration = None if isinstance(verdict, Held) else clock.monotonic() - since
        self._report(Event(duration=duration, **fields, **_event_fields(verdict)))
        return verdict

    def _verdict(self, received: ReceivedMessage, lateness: Lateness) -> Verdict:
        try:
            self._attempt(received, lateness)
        except _NotBegun as fault:
            return fault.held
        except BaseException as error:
            settings, held = self._connection.settings, self._connection.clock.monotonic() - received.claim.received
            return verdict_on(error, attempt=received.attempt, settings=settings, jitter=self._jitter(), held=held)
        return Done()

    def _attempt(self, received: ReceivedMessage, lateness: Lateness) -> None:
        try:
            job = received.for_handler(lateness=lateness, read=self._connection.read_payload)
        except RETRYABLE as fault:
            raise _NotBegun(fault) from fault
        expected = (Retry, Discard, Interrupted, _NotBegun)
        trace = received.job.trace if received.job else None
        with self._trace(trace, queue=received.queue, job_id=received.id, attempt=received.attempt, expected=expected):
            if self._handler.once:
                self._once(received, job)
            else:
                self._call(job)

    def _once(self, received: ReceivedMessage, job: ReceivedJob) -> None:
        tried = False

        def effect() -> None:
            nonlocal tried
            tried = True
            self._call(job)

        try:
            self._connection.once(received.once_key, effect)
        except RETRYABLE as fault:
            if tried:
                raise
            raise _NotBegun(fault) from fault

    def _call(self, job: ReceivedJob) -> None:
        """Run the handler. If it returns a coroutine, run that in the loop while this thread waits."""
        returned = self._handler.call(job)
        # To asyncio's own iscoroutine, generators are coroutines on Python 3.11.
        if not isinstance(returned, Coroutine):
            check_returned(returned)
            return
        if self._loop is None:
            asyncio.run(returned)
        else:
            _wait_for(asyncio.run_coroutine_threadsafe(_raised_by(returned), self._loop))

    def _note_outcome(self, received: ReceivedMessage, state: State, **fields: Any) -> None:
        """Record an outcome if the queue tracks them. A fault is reported; the job goes on."""
        if not self._connection.settings.queue.track or received.job is None:
            return
        outcome = Outcome(state=state, attempts=received.attempt, **fields)
        try:
            note_outcome(received.job.id, outcome, expires=received.job.expires, table=self._connection.table)
        except RETRYABLE as fault:
            self._report(trouble(fault, queue=received.queue, job=received.id, what="its outcome was not noted"))


async def _raised_by(coroutine: Coroutine[Any, Any, Any]) -> Exception | None:
    """Return the exception that a coroutine raises: its future would take some for its own cancellation."""
    try:
        await coroutine
    except Exception as error:
        return error
    return None


def _wait_for(coroutine: "Future[Exception | None]") -> None:
    try:
        error = coroutine.result()
    except CancelledError:
        # It may have had its effect, unlike a coroutine that raised: `once` tells these apart by Exception.
        raise asyncio.CancelledError from None
    if error is not None:
        raise error


def _finite_or_none(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _outcome_state(verdict: Verdict) -> State:
    match verdict:
        case Done():
            return State.SUCCEEDED
        case Again() | Held():
            return State.DISPATCHED
        case Dead():
            return State.FAILED
        case Skipped():
            return State.SKIPPED


def _event_fields(verdict: Verdict) -> dict[str, Any]:
    match verdict:
        case Done():
            return {"kind": Kind.SUCCEEDED}
        case Again(seconds=seconds, error=error, reason=reason):
            return {"kind": Kind.RETRIED, "delay": seconds, "error": error, "reason": reason}
        case Held(error=error, reason=reason):
            return {"kind": Kind.TROUBLE, "error": error, "reason": reason}
        case Dead(error=error, reason=reason):
            return {"kind": Kind.FAILED, "error": error, "reason": reason}
        case Skipped():
            return {"kind": Kind.OVERLAPPED, "reason": ANOTHER_RUNS}
