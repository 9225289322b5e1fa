"""Run the handler for one job, and tell what is to become of it."""

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
from dueline.worker.lateness import Lateness
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import ReceivedJob, Taken
from dueline.worker.verdict import Again, Dead, Discard, Done, Held, Interrupted, Retry, Verdict, verdict_on
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
    """A function that works jobs of a queue off; with `once`, each job has its effect once at most.

    At most `concurrency` jobs run at a time, by default as many as the worker says.
    """

    queue: str
    call: Callable[[ReceivedJob], Any]
    once: bool = False
    concurrency: int | None = None


class _NotBegun(Exception):
    """What kept a job's handler from beginning has nothing to do with the job."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.held = Held(error=type(fault).__name__, reason=f"it could not begin, and is held: {fault}")


class HandlerRunner:
    """Runs a handler. `loop` runs it if it is a coroutine function; `jitter` returns 0 to 1."""

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
        self._jitter = jitter

    def run(self, taken: Taken) -> Verdict:
        """Run the handler, note the outcome of a queue that tracks, and return what is to become of the job."""
        clock = self._connection.clock
        behind, started, since = self._connection.behind(), clock.now(), clock.monotonic()
        begun: dict[str, Any] = {"queue": taken.queue, "job": taken.id, "attempt": taken.attempt}
        held = self._connection.settings.queue.precise
        lateness = Lateness.of(taken.due, now=started, behind=behind, held=held)
        begun |= {"lateness": lateness.at_least, "lateness_at_most": _known(lateness.at_most)}
        self._report(Event(kind=Kind.STARTED, **begun))
        self._note(taken, State.RUNNING, started=started)
        verdict = self._verdict(taken, lateness)
        self._note(taken, _state(verdict), started=started, ended=clock.now(), error=getattr(verdict, "error", None))
        took = None if isinstance(verdict, Held) else clock.monotonic() - since
        self._report(Event(duration=took, **begun, **_told(verdict)))
        return verdict

    def _verdict(self, taken: Taken, lateness: Lateness) -> Verdict:
        try:
            self._attempt(taken, lateness)
        except _NotBegun as fault:
            return fault.held
        except BaseException as error:
            settings, held = self._connection.settings, self._connection.clock.monotonic() - taken.claim.received
            return verdict_on(error, attempt=taken.attempt, settings=settings, jitter=self._jitter(), held=held)
        return Done()

    def _attempt(self, taken: Taken, lateness: Lateness) -> None:
        try:
            job = taken.received(lateness=lateness, read=self._connection.read_payload)
        except RETRYABLE as fault:
            raise _NotBegun(fault) from fault
        expected = (Retry, Discard, Interrupted, _NotBegun)
        trace = taken.job.trace if taken.job else None
        with self._trace(trace, queue=taken.queue, job_id=taken.id, attempt=taken.attempt, expected=expected):
            if self._handler.once:
                self._once(taken, job)
            else:
                self._call(job)

    def _once(self, taken: Taken, job: ReceivedJob) -> None:
        tried = False

        def effect() -> None:
            nonlocal tried
            tried = True
            self._call(job)

        try:
            self._connection.once(taken.once_key, effect)
        except RETRYABLE as fault:
            if tried:
                raise
            raise _NotBegun(fault) from fault

    def _call(self, job: ReceivedJob) -> None:
        """Run the handler; of one that returns a coroutine, that too, in the loop, while this thread waits."""
        returned = self._handler.call(job)
        if not asyncio.iscoroutine(returned):
            return
        if self._loop is None:
            asyncio.run(returned)
        else:
            _wait_for(asyncio.run_coroutine_threadsafe(_raised_by(returned), self._loop))

    def _note(self, taken: Taken, state: State, **told: Any) -> None:
        """Note an outcome where a queue tracks: the job comes before the note on it."""
        if not self._connection.settings.queue.track or taken.job is None:
            return
        outcome = Outcome(state=state, attempts=taken.attempt, **told)
        try:
            note_outcome(taken.job.id, outcome, expires=taken.job.expires, table=self._connection.table)
        except RETRYABLE as fault:
            self._report(trouble(fault, queue=taken.queue, job=taken.id, what="its outcome was not noted"))


async def _raised_by(coroutine: Coroutine[Any, Any, Any]) -> Exception | None:
    """Return the exception that a coroutine raises: a future of it would take some for its own cancellation."""
    try:
        await coroutine
    except Exception as error:
        return error
    return None


def _wait_for(coroutine: "Future[Exception | None]") -> None:
    try:
        error = coroutine.result()
    except CancelledError:
        # Not known to have had no effect, unlike one that raised: `once` tells these apart by Exception.
        raise asyncio.CancelledError from None
    if error is not None:
        raise error


def _known(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _state(verdict: Verdict) -> State:
    match verdict:
        case Done():
            return State.SUCCEEDED
        case Again() | Held():
            return State.DISPATCHED
        case Dead():
            return State.FAILED


def _told(verdict: Verdict) -> dict[str, Any]:
    match verdict:
        case Done():
            return {"kind": Kind.SUCCEEDED}
        case Again(seconds=seconds, error=error, reason=reason):
            return {"kind": Kind.RETRIED, "delay": seconds, "error": error, "reason": reason}
        case Held(error=error, reason=reason):
            return {"kind": Kind.TROUBLE, "error": error, "reason": reason}
        case Dead(error=error, reason=reason):
            return {"kind": Kind.FAILED, "error": error, "reason": reason}
