"""Run the handler for one job, and tell what is to become of it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dueline.errors import RETRYABLE
from dueline.job import State
from dueline.outcome import Outcome, note_outcome
from dueline.trace import TraceContext
from dueline.working.event import Event, Kind, Report, trouble
from dueline.working.place import Place
from dueline.working.received import ReceivedJob, Taken
from dueline.working.verdict import Again, Dead, Discard, Done, Interrupted, Retry, Verdict, verdict_on


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


class Handling:
    """Runs a handler. `loop` runs it if it is a coroutine function; `jitter` returns 0 to 1."""

    def __init__(
        self,
        handler: Handler,
        place: Place,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        report: Report,
        trace: Trace,
        jitter: Callable[[], float],
    ) -> None:
        self._handler = handler
        self._place = place
        self._loop = loop
        self._report = report
        self._trace = trace
        self._jitter = jitter

    def run(self, taken: Taken) -> Verdict:
        """Run the handler, note the outcome of a queue that tracks, and return what is to become of the job."""
        clock = self._place.clock
        started, since = clock.now(), clock.monotonic()
        begun: dict[str, Any] = {"queue": taken.queue, "job": taken.id, "attempt": taken.attempt}
        lateness = (started - taken.due).total_seconds()
        self._report(Event(kind=Kind.STARTED, lateness=lateness, **begun))
        self._note(taken, State.RUNNING, started=started)
        verdict = self._verdict(taken)
        self._note(taken, _state(verdict), started=started, ended=clock.now(), error=getattr(verdict, "error", None))
        told = {**begun, "lateness": lateness, "duration": clock.monotonic() - since}
        self._report(Event(**told, **_told(verdict)))
        return verdict

    def _verdict(self, taken: Taken) -> Verdict:
        try:
            self._attempt(taken)
        except BaseException as error:
            settings = self._place.settings
            return verdict_on(error, attempt=taken.attempt, settings=settings, jitter=self._jitter())
        return Done()

    def _attempt(self, taken: Taken) -> None:
        job = taken.received(now=self._place.clock.now(), read=self._place.read_payload)
        expected = (Retry, Discard, Interrupted)
        trace = taken.job.trace if taken.job else None
        with self._trace(trace, queue=taken.queue, job_id=taken.id, attempt=taken.attempt, expected=expected):
            if self._handler.once:
                self._place.once(taken.once_key, lambda: self._call(job))
            else:
                self._call(job)

    def _call(self, job: ReceivedJob) -> None:
        """Run the handler; of one that returns a coroutine, that too, in the loop, while this thread waits."""
        returned = self._handler.call(job)
        if not asyncio.iscoroutine(returned):
            return
        if self._loop is None:
            asyncio.run(returned)
        else:
            _wait_for(asyncio.run_coroutine_threadsafe(returned, self._loop))

    def _note(self, taken: Taken, state: State, **told: Any) -> None:
        """Note an outcome where a queue tracks: the job comes before the note on it."""
        if not self._place.settings.queue.track or taken.job is None:
            return
        outcome = Outcome(state=state, attempts=taken.attempt, **told)
        try:
            note_outcome(taken.job.id, outcome, expires=taken.job.expires, table=self._place.table)
        except RETRYABLE as fault:
            self._report(trouble(fault, queue=taken.queue, job=taken.id, what="its outcome was not noted"))


def _wait_for(coroutine: "Future[Any]") -> None:
    try:
        coroutine.result()
    except CancelledError:
        # Not known to have had no effect, unlike one that raised: `once` tells these apart by Exception.
        raise asyncio.CancelledError from None


def _state(verdict: Verdict) -> State:
    match verdict:
        case Done():
            return State.SUCCEEDED
        case Again():
            return State.DISPATCHED
        case Dead():
            return State.FAILED


def _told(verdict: Verdict) -> dict[str, Any]:
    match verdict:
        case Done():
            return {"kind": Kind.SUCCEEDED}
        case Again(seconds=seconds, error=error, reason=reason):
            return {"kind": Kind.RETRIED, "delay": seconds, "error": error, "reason": reason}
        case Dead(error=error, reason=reason):
            return {"kind": Kind.FAILED, "error": error, "reason": reason}
