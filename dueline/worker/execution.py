"""Run the handler for one job, and decide what happens to the job then."""

import asyncio
import inspect
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from dueline import otel
from dueline.core.job import State
from dueline.core.status import Outcome, note_outcome
from dueline.core.text import shown, stack_of
from dueline.errors import RETRYABLE
from dueline.worker import delivery
from dueline.worker.delivery import Discard, JobVerdict, ReceivedJob, ReceivedMessage, Retries, Retry
from dueline.worker.handlers import Handler, Handlers, is_coroutine_function
from dueline.worker.queue_context import QueueContext

T = TypeVar("T")
# A job that is to be tried again is received within so long, or others may go first.
_RECEIVED_WITHIN_SECONDS = 60
ANOTHER_RUNS = "another job of its schedule has not ended"


class OverlapLock:
    """Lets a job of a schedule run, or skips it while another has the lock. Other jobs run as they are.

    A lock outlives the claim on its job's message: where a worker died, the job comes back to its own lock.
    """

    def __init__(self, context: QueueContext) -> None:
        self._context = context

    def run(self, received: ReceivedMessage, handle: Callable[[ReceivedMessage], JobVerdict]) -> JobVerdict:
        """Return how `handle` ended, or Skipped or Deferred: then it did not begin."""
        job, settings = received.job, self._context.settings
        if job is None or job.schedule is None or not job.exclusive:
            return handle(received)
        try:
            if not self._take(job.schedule, received, max(settings.longest_run, settings.visibility_timeout)):
                return delivery.Skipped()
        except RETRYABLE as fault:
            held = _deferred(fault, "its schedule's lock could not be taken")
            self._context.report(received.event(delivery.EventKind.TROUBLE, error=held.error, reason=held.reason))
            return held
        verdict = handle(received)
        self._let_go(job.schedule, received, verdict)
        return verdict

    def _take(self, schedule: str, received: ReceivedMessage, seconds: int) -> bool:
        now = self._context.clock.now()
        until = now + timedelta(seconds=seconds + _RECEIVED_WITHIN_SECONDS)
        return self._context.locks.take(schedule, job=received.id, now=now, until=until)

    def _let_go(self, schedule: str, received: ReceivedMessage, verdict: JobVerdict) -> None:
        """Free a lock, or hold it until the job's next attempt; leave it where that may run elsewhere by now."""
        if not received.is_live(self._context.clock.monotonic()):
            return
        try:
            match verdict:
                case delivery.RetryLater(seconds=seconds):
                    self._take(schedule, received, seconds)
                case delivery.Succeeded() | delivery.DeadLettered():
                    self._context.locks.free(schedule, job=received.id)
        except Exception as fault:
            self._context.report(received.trouble(fault, "its schedule's lock was not let go, and expires"))


def _deferred(fault: BaseException | None, what: str) -> delivery.Deferred:
    return delivery.Deferred(error=type(fault).__name__, reason=f"{what}: {fault}")


class _NotStarted(Exception):
    """AWS failed before a job's handler could begin, by the error that caused this. It is no failure of it."""


Callback = Callable[[ReceivedJob, BaseException], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Callbacks:
    """What a worker's user wants called with a job and what its handler raised: at each error, and as the job dies."""

    on_error: Callback | None = None
    on_dead: Callback | None = None

    def __post_init__(self) -> None:
        for name in ("on_error", "on_dead"):
            call = getattr(self, name)
            if call is not None and (not callable(call) or is_coroutine_function(call)):
                raise ValueError(f"{name} is {shown(call)}: it must be a plain function of a job and an exception")

    def call(self, job: ReceivedJob, error: BaseException, verdict: JobVerdict, *, report: delivery.Report) -> None:
        """Call those that this verdict on a job concerns. What one raises is reported, and harms nothing."""
        is_failure = not isinstance(error, Retry | Discard | delivery.NoHandler)
        calls = {"on_error": self.on_error if is_failure else None}
        calls["on_dead"] = self.on_dead if isinstance(verdict, delivery.DeadLettered) else None
        for name, call in calls.items():
            try:
                if call is not None:
                    call(job, error)
            except BaseException as fault:
                # SystemExit would end a thread that runs jobs.
                report(job.received.trouble(fault, f"{name} raised"))


class HandlerRunner:
    """Runs the handler of one job at a time, and decides by how it ended what happens to the job.

    `loop` runs handlers that are coroutine functions; `jitter` returns 0 to 1.
    """

    def __init__(
        self,
        handlers: Handlers,
        context: QueueContext,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        jitter: Callable[[], float],
        callbacks: Callbacks = Callbacks(),
    ) -> None:
        self._handlers, self.context, self._loop, self._callbacks = handlers, context, loop, callbacks
        self._jitter = jitter
        self.kinds = handlers.kinds
        self._overlap = OverlapLock(context)

    def run(self, received: ReceivedMessage) -> JobVerdict:
        """Run the job's handler, record the outcome if the queue tracks them, and return what happens to the job.

        A job whose schedule lets one run at a time is skipped while another one has not ended.
        """
        verdict = self._overlap.run(received, self._run)
        if isinstance(verdict, delivery.Skipped):
            now = self.context.clock.now()
            self._note_outcome(received, verdict.state, started=now, ended=now)
            self.context.report(received.event(verdict.kind, reason=ANOTHER_RUNS))
        return verdict

    def _run(self, received: ReceivedMessage) -> JobVerdict:
        handler = self._handlers.find(received.job) or self._refusing(received)
        clock = self.context.clock
        started, since = clock.now(), clock.monotonic()
        lateness = delivery.lateness_of(received.due, now=started, behind=self.context.behind())
        about = received.event(delivery.EventKind.STARTED, lateness=lateness)
        self.context.report(about)
        self._note_outcome(received, State.RUNNING, started=started)
        verdict = self._verdict(handler, received, lateness)
        self._note_outcome(received, verdict.state, started=started, ended=clock.now(), error=verdict.error or None)
        fields: dict[str, Any] = {"error": verdict.error, "reason": verdict.reason, "stack": verdict.stack}
        fields |= {"delay": getattr(verdict, "seconds", None)}
        duration = None if isinstance(verdict, delivery.Deferred) else clock.monotonic() - since
        self.context.report(replace(about, kind=verdict.kind, duration=duration, **fields))
        return verdict

    def _refusing(self, received: ReceivedMessage) -> Handler:
        """Return what a job gets that no handler here takes: it is tried again, perhaps by a process that has one."""
        job = received.job
        what = f"kind {job.kind!r}" if job and job.kind else "jobs without a kind"
        schedule = f", or schedule {job.schedule!r}" if job and job.schedule else ""
        reason = f"no handler of this process is for {what}{schedule}, or for any job of queue {received.queue!r}"

        def refuse(_: ReceivedJob) -> None:
            raise delivery.NoHandler(reason)

        # How many attempts it has is known where its handler is: here, as many as its queue allows.
        return Handler(queue=received.queue, call=refuse, retry=Retries(attempts=self.context.settings.max_receives))

    def _verdict(self, handler: Handler, received: ReceivedMessage, lateness: float) -> JobVerdict:
        attempts = handler.retry.attempts_of(self.context.settings)
        job = received.for_handler(lateness=lateness, max_attempts=attempts)
        try:
            job = replace(job, payload=self._payload(received))
            self._attempt(handler, received, job)
        except _NotStarted as not_started:
            return _deferred(not_started.__cause__, "it could not begin, and is held")
        except BaseException as error:
            verdict = self._verdict_on(error, received, job, handler.retry)
            is_unfinished = handler.once and not isinstance(error, Exception)
            is_unknown = is_unfinished and isinstance(verdict, delivery.DeadLettered)
            # So that a redrive lets it run again, which its note forbids otherwise.
            return replace(verdict, error=delivery.Interrupted.__name__) if is_unknown else verdict
        return delivery.Succeeded()

    def _verdict_on(
        self, error: BaseException, received: ReceivedMessage, job: ReceivedJob, retries: Retries
    ) -> JobVerdict:
        settings, held = self.context.settings, self.context.clock.monotonic() - received.received
        of: dict[str, Any] = {"settings": settings, "jitter": self._jitter(), "held": held, "retries": retries}
        stack = stack_of(error, is_deliberate=isinstance(error, Retry | Discard))
        verdict = replace(delivery.verdict_on(error, attempt=received.attempt, **of), stack=stack)
        self._callbacks.call(job, error, verdict, report=self.context.report)
        return verdict

    def _payload(self, received: ReceivedMessage) -> Any:
        try:
            return received.payload(self.context.read_payload)
        except RETRYABLE as fault:
            raise _NotStarted from fault

    def _attempt(self, handler: Handler, received: ReceivedMessage, job: ReceivedJob) -> None:
        about: dict[str, Any] = {"queue": received.queue, "job_id": received.id, "attempt": received.attempt}
        about |= {
            "kind": received.kind,
            "expected": (Retry, Discard, delivery.Interrupted, delivery.NoHandler, _NotStarted),
        }
        with otel.handling(received.job.trace if received.job else None, **about):
            try:
                if handler.once:
                    self._once(handler, received, job)
                else:
                    self._call(handler, job)
            except Retry as retry:
                delivery.seconds_of(retry)
                raise

    def _once(self, handler: Handler, received: ReceivedMessage, job: ReceivedJob) -> None:
        tried = False

        def effect() -> None:
            nonlocal tried
            tried = True
            self._call(handler, job)

        try:
            self.context.once(received.once_key, effect)
        except RETRYABLE as fault:
            if tried:
                raise
            raise _NotStarted from fault

    def _call(self, handler: Handler, job: ReceivedJob) -> None:
        """Run the handler. If it returns a coroutine, run that in the loop while this thread waits."""
        process = os.getpid()
        try:
            returned = handler.call(job)
        finally:
            if os.getpid() != process:
                # The handler forked: its child would go on as a second worker, with the same jobs.
                os._exit(0)
        if not isinstance(returned, Coroutine):
            _check_is_over(returned)
            return
        error = _raised_by(returned)
        try:
            raised = asyncio.run_coroutine_threadsafe(error, self._loop).result() if self._loop else _run_alone(error)
        except CancelledError:
            # It may have had its effect, unlike a coroutine that raised: `once` distinguishes these by Exception.
            raise asyncio.CancelledError from None
        if raised is not None:
            raise raised

    def _note_outcome(self, received: ReceivedMessage, state: State, **fields: Any) -> None:
        """Record an outcome if the queue tracks them. A fault is reported; the job goes on."""
        if not self.context.settings.queue.track or received.job is None:
            return
        outcome = Outcome(state=state, attempts=received.attempt, kind=received.kind, **fields)
        try:
            note_outcome(received.job.id, outcome, expires=received.job.expires, table=self.context.table)
        except RETRYABLE as fault:
            self.context.report(received.trouble(fault, "its outcome was not noted"))


async def _raised_by(coroutine: Coroutine[Any, Any, Any]) -> BaseException | None:
    """Return what a coroutine raises: asyncio itself takes some for a cancellation, and ends or hangs on others."""
    try:
        _check_is_over(await coroutine)
    except BaseException as error:
        return error
    return None


def _run_alone(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own: in another thread where one runs in this, as in a test that is one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, coroutine).result()


def _check_is_over(returned: object) -> None:
    """Raise Discard where a handler returned what has not run, or not to its end, and what nobody waits for."""
    later = inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned)
    if later or isinstance(returned, Future):
        what = f"the handler returned an object of type {type(returned).__name__}, for which nobody waits"
        raise Discard(f"{what}: wait for it in the handler, or make that a coroutine function")
