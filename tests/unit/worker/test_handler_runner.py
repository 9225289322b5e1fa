import asyncio
import contextlib
import os
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import rows
from dueline.core.clock import SystemClock
from dueline.core.job import State
from dueline.core.ports import Pointer
from dueline.core.status import read_outcome
from dueline.core.trace import TraceContext
from dueline.errors import Unavailable
from dueline.testing import VirtualClock
from dueline.worker.delivery import DeadLettered, Deferred, Discard, EventKind, Retry, RetryLater, Succeeded
from dueline.worker.execution import HandlerRunner
from dueline.worker.runner import event_loop
from tests.builders import a_job, a_queue
from tests.wire import failing
from tests.work import Events, a_connection, a_received_message, handlers_of


class Running:
    """A runner of a handler, its connection and its events."""

    def __init__(self, call, *, once=False, kind=None, loop=None, behind=0.0, **settings):
        self.events = Events()
        self.connection = replace(a_connection(report=self.events, **settings), behind=lambda: behind)
        handlers = handlers_of(call, once=once, kind=kind)
        self.run = HandlerRunner(handlers, self.connection, jitter=lambda: 1.0, loop=loop).run

    def outcome(self, job):
        key = rows.outcome_key(job.id)
        return read_outcome(self.connection.table.read([key]).rows[key])


def test_the_12_hours_count_from_the_receipt():
    """SQS counts from there: what waited for its turn, or ran for long, has less."""
    received = SystemClock().monotonic() - 40_000
    assert Running(failing(Retry(2000))).run(a_received_message(received=received)).seconds == 2000
    assert isinstance(Running(failing(Retry(3000))).run(a_received_message(received=received)), DeadLettered)


async def exiting(job):
    raise SystemExit


async def cancelled(job):
    raise asyncio.CancelledError


@pytest.mark.parametrize("call", [failing(SystemExit(1)), exiting, cancelled])
def test_exiting_handler_has_failed(call):
    with event_loop() as loop:
        running = Running(call, loop=loop)
        for _ in range(2):
            assert isinstance(running.run(a_received_message()), RetryLater)
    assert [event.kind for event in running.events] == [EventKind.STARTED, EventKind.RETRIED] * 2


async def cancelling(job):
    for task in asyncio.all_tasks():
        task.cancel()


def test_coroutine_that_cancels_all_tasks_ends_no_loop():
    with event_loop() as loop:
        Running(cancelling, loop=loop).run(a_received_message())
        assert Running(lambda _: asyncio.sleep(0), loop=loop).run(a_received_message()) == Succeeded()


def test_process_that_a_handler_forks_runs_no_more_jobs():
    ends = []

    def fork(_):
        if child := os.fork():
            ends.append(os.waitpid(child, 0)[1])

    test = os.getpid()
    assert Running(fork).run(a_received_message()) == Succeeded()
    if os.getpid() != test:
        os._exit(1)
    assert ends == [0]


@pytest.mark.parametrize("is_coroutine", [False, True])
@pytest.mark.parametrize("later", [(each for each in ()), Future()], ids=["generator", "future"])
def test_handler_that_returns_work_undone_is_dead(later, is_coroutine):
    async def call(_):
        return later

    verdict = Running(call if is_coroutine else lambda _: later).run(a_received_message(a_job()))
    assert isinstance(verdict, DeadLettered)
    assert f"of type {type(later).__name__}, for which nobody waits" in verdict.reason


def test_coroutine_runs_in_the_loop():
    loops = []

    async def call(job):
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        if job.attempt == 2:
            raise Discard("why")

    with event_loop() as loop:
        assert Running(call, loop=loop).run(a_received_message()) == Succeeded()
        dead = Running(call, loop=loop).run(a_received_message(receives=2))
        assert dead == DeadLettered(error="Discard", reason="why")
    assert loops == [loop, loop]
    assert Running(call).run(a_received_message()) == Succeeded()


def test_once_cancelled_coroutine_does_not_run_again():
    """asyncio marks its task as cancelled after it has returned."""
    had = []

    async def call(job):
        had.append(job)
        asyncio.current_task().cancel()

    with event_loop() as loop:
        running, received = Running(call, once=True, loop=loop), a_received_message()
        assert [running.run(received).error for _ in range(2)] == ["CancelledError", "Interrupted"]
    assert len(had) == 1


def test_once_interrupted_job_is_dead():
    """A redrive finds the job by that error, and lets it run again."""
    running, job = Running(failing(AssertionError), once=True), a_job()
    running.connection.once.done[str(job.id)] = False
    for receives in (2, 3):
        assert running.run(a_received_message(job, receives=receives)).error == "Interrupted"
    dead = Running(failing(SystemExit("stopped")), once=True).run(a_received_message(receives=3))
    assert dead == DeadLettered(error="Interrupted", reason="attempt 3 of 3 failed: stopped")
    assert Running(failing(TypeError()), once=True).run(a_received_message(receives=3)).error == "TypeError"


def test_job_that_cannot_start_is_never_dead():
    fail, job = failing(Unavailable("down")), a_job(payload=Pointer(bucket="b", key="k").text, offloaded_bytes=300_000)
    running = Running(failing(AssertionError), queue=a_queue(track=True))
    running.connection.read_payload = fail
    assert isinstance(running.run(a_received_message(job, receives=99)), Deferred)
    assert running.outcome(job).state is State.DISPATCHED
    running = Running(failing(AssertionError), once=True)
    running.connection.once = fail
    assert isinstance(running.run(a_received_message(receives=99)), Deferred)


def test_handlers_aws_error_is_a_failure():
    def noting_fails(key, effect):
        effect()
        raise Unavailable("down")

    unnoted = Running(lambda _: None, once=True)
    unnoted.connection.once = noting_fails
    for running in (unnoted, *(Running(failing(Unavailable("down")), once=once) for once in (True, False))):
        assert isinstance(running.run(a_received_message(receives=3)), DeadLettered)


def test_missing_payload_follows_the_policy():
    job = a_job(payload=Pointer(bucket="payloads", key="gone").text, offloaded_bytes=300_000)
    assert isinstance(Running(print).run(a_received_message(job)), RetryLater)
    assert Running(print).run(a_received_message(job, receives=3)).error == "InvalidJob"


def test_tracked_queue_notes_outcomes():
    observed, job = [], a_job()
    running = Running(lambda _: observed.append(running.outcome(job)), queue=a_queue(track=True))
    running.run(a_received_message(job))
    assert [outcome.state for outcome in observed] == [State.RUNNING]
    done = running.outcome(job)
    assert (done.state, done.attempts, done.error) == (State.SUCCEEDED, 1, None)
    assert done.started <= done.ended
    running = Running(failing(TypeError("secret")), queue=a_queue(track=True))
    running.run(a_received_message(job))
    assert (running.outcome(job).state, running.outcome(job).error) == (State.DISPATCHED, "TypeError")
    running.run(a_received_message(job, receives=3))
    assert (running.outcome(job).state, running.outcome(job).attempts) == (State.FAILED, 3)
    untracked = Running(lambda _: None)
    untracked.run(a_received_message(job))
    assert untracked.connection.table.read([rows.outcome_key(job.id)]).rows == {}


def test_unnoted_outcome_fails_no_job(monkeypatch):
    running = Running(lambda _: None, queue=a_queue(track=True))
    monkeypatch.setattr(running.connection.table, "record", failing(Unavailable("down")))
    assert running.run(a_received_message(a_job(kind="welcome"))) == Succeeded()
    assert {event.job_kind for event in running.events.of(EventKind.TROUBLE)} == {"welcome"}


@pytest.mark.parametrize("error", [None, Retry(1), Discard("x")])
def test_the_handler_runs_in_its_jobs_trace(error, monkeypatch):
    """A requested end is no error of it."""
    spans, own = [], TraceContext(parent=f"00-{1:032x}-{1:016x}-01")

    @contextlib.contextmanager
    def trace(job_trace, **fields):
        spans.append((job_trace, fields))
        yield
        spans.append("ended")

    def call(job):
        spans.append("ran")
        if error:
            raise error

    monkeypatch.setattr("dueline.otel.handling", trace)
    received = a_received_message(a_job(kind="welcome", trace=own), receives=2)
    Running(call).run(received)
    (job_trace, fields), ran, *ended = spans
    assert (job_trace, ran, ended) == (own, "ran", [] if error else ["ended"])
    assert (fields["queue"], fields["job_id"], fields["attempt"]) == ("emails", received.id, 2)
    assert fields["kind"] == "welcome"
    expected = {each.__name__ for each in fields["expected"]}
    assert expected == {"Retry", "Discard", "Interrupted", "NoHandler", "_NotStarted"}


def test_lateness_is_reported():
    got, job = [], a_job()
    running = Running(got.append, behind=0.75, clock=VirtualClock(job.id.due + timedelta(seconds=0.25)))
    running.run(a_received_message(job))
    assert [event.lateness for event in running.events] == [0.25] * 2
    assert [event.duration for event in running.events] == [None, 0.0]
    assert got[0].lateness == 0.25


# Kinds


def test_unknown_kind_is_retried_up_to_its_queues_receives():
    """How many attempts its handler gives it is known only where that is: old processes may not end it sooner."""
    job, running = a_job(kind="digest"), Running(print, kind="welcome", queue=a_queue(track=True))
    why, most = "no handler of this process is for kind 'digest'", 10
    for receives in (1, most - 1):
        verdict = running.run(a_received_message(job, receives=receives))
        assert (type(verdict), verdict.error, verdict.stack) == (RetryLater, "NoHandler", "")
        assert why in verdict.reason
        assert (running.outcome(job).state, running.outcome(job).error) == (State.DISPATCHED, "NoHandler")
    dead = running.run(a_received_message(job, receives=most))
    assert (type(dead), dead.error) == (DeadLettered, "NoHandler")
    assert dead.reason.startswith(f"attempt {most} of {most} failed: {why}")
    outcome = running.outcome(job)
    assert (outcome.state, outcome.error, outcome.kind) == (State.FAILED, "NoHandler", "digest")
