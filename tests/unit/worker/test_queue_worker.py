"""A queue worker over queues in memory, with its threads, in real time."""

import math
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

import pytest

from dueline.core import rows
from dueline.core.message import BATCH_MESSAGES, ID, Message
from dueline.core.ports import Pointer
from dueline.core.queue_settings import Rate
from dueline.errors import Throttled, Unavailable
from dueline.operations import control
from dueline.testing import VirtualClock
from dueline.worker.delivery import Discard, EventKind, ReceivedMessage
from dueline.worker.execution import HandlerRunner
from dueline.worker.limits import WATCH_SECONDS, RateLimiter
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.receiving import prepare
from tests.builders import NOW, a_message, a_queue
from tests.waiting import HANG_SECONDS, wait_until
from tests.wire import failing
from tests.work import SharedQueue, a_connection, due_now, handlers_of


class Working:
    """A queue worker at work on jobs; `starts` has those that its handler got, and when."""

    def __init__(self, *jobs, connection=None, call=lambda job: None, once=False, concurrency=8):
        self.connection = connection = connection or a_connection()
        self.events = connection.report
        self.queue, self.dead_letters = connection.levels[0], connection.dead_letters
        self.starts = []
        self._call = call
        runner = HandlerRunner(handlers_of(self._note, once=once), connection, jitter=lambda: 0.5)
        self.worker = QueueWorker(runner, concurrency=concurrency, jitter=lambda: 0.5)
        self.send(*jobs)

    def send(self, *jobs):
        for job in jobs:
            assert self.queue.send([Message.of(job)]) == []

    def _note(self, job):
        self.starts.append((job, datetime.now(UTC)))
        self._call(job)

    def __enter__(self):
        self.worker.open()
        self.worker.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.worker.stop()
        wait_until(lambda: not self.worker.is_busy)
        return self.finish()

    def finish(self):
        is_done = self.worker.put_back(within=HANG_SECONDS)
        self.worker.finish(within=HANG_SECONDS)
        return is_done

    @property
    def numbers(self):
        return [job.payload for job, _ in self.starts]

    def is_empty(self):
        return not self.queue.messages


def due(*numbers, **fields):
    return [due_now(number, **fields) for number in numbers]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    """Four times as fast as deployed, and sooner after a fault: nobody waits for minutes."""
    monkeypatch.setattr("dueline.worker.receiving.LONG_POLL_SECONDS", 1)
    monkeypatch.setattr("dueline.worker.queue_worker.WATCH_SECONDS", WATCH_SECONDS / 4)
    monkeypatch.setattr("dueline.worker.queue_worker._PERMIT_SECONDS", 0.2)
    monkeypatch.setattr("dueline.worker.queue_worker._LONGEST_BACKOFF_SECONDS", 0.5)
    monkeypatch.setattr("dueline.worker.queue_worker.RETRY_SECONDS", 1)


def test_each_job_succeeds_or_fails_alone():
    def call(job):
        if job.payload == 1:
            raise TypeError("no")
        if job.payload == 2:
            raise Discard("why")

    connection, cancelled = a_connection(), due_now(5)
    connection.table.write([rows.cancellation_row(cancelled.id, at=NOW)])
    connection.levels[0].send([a_message(body="6", attributes={ID: "not a job's"})])
    with Working(*due(*range(5)), cancelled, connection=connection, call=call) as working:
        assert wait_until(working.is_empty)
    assert Counter(working.numbers) == {0: 1, 1: 3, 2: 1, 3: 1, 4: 1}
    attempts = [at for job, at in working.starts if job.payload == 1]
    assert all((later - sooner).total_seconds() >= 0.9 for sooner, later in pairwise(attempts)), "by the policy"
    dead_letter_queue = {
        dead_letter.body: (dead_letter.attributes["dueline-error"], dead_letter.attributes["dueline-attempts"])
        for dead_letter in working.dead_letters.messages
    }
    assert dead_letter_queue == {"1": ("TypeError", "3"), "2": ("Discard", "1"), "6": ("InvalidJob", "1")}


def test_slots_are_taken_before_more_is_received():
    """Or one worker would keep the jobs of many slots."""
    connection = a_connection()
    control.set_rate("emails", Rate.parse("6/m"), table=connection.table, now=NOW)
    working = Working(*due(1, 2), connection=connection)
    working.worker.open()
    for _ in range(2):
        working.worker.receive_once()
    assert len(working.events.of(EventKind.RECEIVED)) == 1


def test_unread_cancel_holds_a_waiting_job():
    connection = a_connection(queue=a_queue(precise=True))
    outage = Outage(connection.table, None)
    with Working(due_now(1, later=4), connection=connection) as working:
        assert wait_until(lambda: outage.requests == 1)
        outage.fault = Throttled("slow down")
        assert wait_until(lambda: outage.requests == 3)
        assert working.starts == []
        outage.fault = None
        assert wait_until(working.is_empty)
    assert [(job.payload, job.attempt) for job, _ in working.starts] == [(1, 1)]


def test_precise_queue_holds_jobs_until_due():
    """One that is cancelled while it waits is skipped."""
    connection = a_connection(queue=a_queue(precise=True))
    reads, cancelled = Outage(connection.table, None), due_now(5, later=4)
    jobs = [due_now(number, later=1 + number / 10) for number in range(5)]
    with Working(*jobs, cancelled, connection=connection) as working:
        assert wait_until(lambda: reads.requests > 0)
        connection.table.write([rows.cancellation_row(cancelled.id, at=NOW)])
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == [0, 1, 2, 3, 4]
    assert all(at >= job.due for job, at in working.starts)
    assert [event.job for event in working.events.of(EventKind.SKIPPED)] == [str(cancelled.id)]


def test_lost_claim_settles_nothing():
    """It is neither acknowledged nor made a dead letter: another attempt has the message by then."""
    observed = []

    def call(job):
        if job.attempt == 1:
            wait_until(lambda: job.is_claim_lost)
            observed.append(job.is_claim_lost)
            raise Discard("too late to say so")

    connection = a_connection(SharedQueue(visibility_timeout=2), visibility_timeout=2, longest_run=2)
    with Working(due_now(), connection=connection, call=call) as working:
        assert wait_until(lambda: len(observed) == 1)
        assert wait_until(working.is_empty)
    # A slow machine may lose more of them.
    attempts = [job.attempt for job, _ in working.starts]
    assert attempts == list(range(1, max(2, len(attempts)) + 1))
    assert len(working.events.of(EventKind.LOST)) == len(attempts) - 1
    assert sum(count for what, count in working.queue.requests if what == "delete") == 1
    assert working.dead_letters.messages == []


def test_unsent_dead_letters_are_sent_again():
    """They keep their permits until then; and when it is stopped, they are sent still."""
    working = Working(*due(0, 1, 2), call=failing(Discard("why")), concurrency=2)
    dead_letters = working.dead_letters.queue
    dead_letters.gone = True
    with working:
        assert wait_until(lambda: len(working.events.of(EventKind.TROUBLE)) == 4)
        assert [job.received.started for job, _ in working.starts] == [None, None], "or renewed for longest_run only"
        dead_letters.gone = False
        assert wait_until(working.is_empty)
        dead_letters.gone = True
        working.send(due_now(3))
        assert wait_until(lambda: len(working.events.of(EventKind.TROUBLE)) > 4)
        dead_letters.gone = False
        assert working.end()
    assert (len(working.starts), len(working.dead_letters.messages), working.is_empty()) == (4, 4, True)


class Outage:
    """Makes a table's cancellations unreadable while `fault` is set; counts how often they were requested."""

    def __init__(self, table, fault):
        self.fault, self.requests, self._read = fault, 0, table.read
        table.read = self

    def __call__(self, keys, **options):
        if keys and keys[0][1].endswith("#cancelled"):
            self.requests += 1
            if self.fault:
                raise self.fault
        return self._read(keys, **options)


def test_unreadable_cancellations_cost_no_attempt():
    connection = a_connection()
    outage = Outage(connection.table, Unavailable("down"))
    with Working(*due(0, 1, 2), connection=connection, concurrency=40) as working:
        assert wait_until(lambda: outage.requests == 2)
        working.send(*due(*range(3, 30)))
        assert wait_until(lambda: outage.requests == 5)
        receives = [delivery.receives for delivery in working.queue.queue.deliveries]
        assert set(receives) == {0, 1}
        assert sum(receives) <= 3 + BATCH_MESSAGES, "more than one open poll receives"
        outage.fault = None
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == list(range(30))
    assert {job.attempt for job, _ in working.starts} == {1}


def with_defects(call, *defects):
    """Return a function that raises these errors first, one a call."""
    left = list(defects)

    def failing(*args, **options):
        if left:
            raise left.pop(0)
        return call(*args, **options)

    return failing


def test_job_that_cannot_begin_costs_no_attempt():
    connection, job = a_connection(max_receives=1), due_now(1)
    connection.read_payload = with_defects(lambda pointer: "1", *[Unavailable("SlowDown")] * 3)
    job = replace(job, payload=Pointer(bucket="b", key="k").text, offloaded_bytes=300_000)
    with Working(job, connection=connection) as working:
        assert wait_until(working.is_empty)
    assert [(job.payload, job.attempt) for job, _ in working.starts] == [(1, 1)]
    assert working.dead_letters.messages == []
    reasons = [event.reason for event in working.events.of(EventKind.TROUBLE)]
    assert reasons == ["it could not begin, and is held: SlowDown"] * 3


def test_new_settings_apply_while_it_works(monkeypatch):
    monkeypatch.setattr("dueline.worker.queue_worker.LONGEST_REFRESH_SECONDS", 0.1)
    connection = a_connection()
    connection.reload = lambda: a_connection(visibility_timeout=60)
    with Working(connection=connection) as working:
        assert wait_until(lambda: connection.settings.visibility_timeout == 60)
        assert wait_until(lambda: len(working.events.of(EventKind.CHANGED)) == 1)


def test_errors_of_receiving_are_survived(monkeypatch):
    working = Working(due_now(1))
    working.queue.receive = with_defects(working.queue.receive, RuntimeError("it cannot receive"))
    defective = with_defects(prepare, RuntimeError("it cannot prepare"))
    monkeypatch.setattr("dueline.worker.queue_worker.prepare", defective)
    with working:
        assert wait_until(working.is_empty)
    # Put back, and counted: what is no fault of AWS's may be the job's own, and must not hold its queue up for good.
    assert [(job.payload, job.attempt) for job, _ in working.starts] == [(1, 2)]
    reasons = [event.reason for event in working.events.of(EventKind.TROUBLE)]
    assert reasons == ["RuntimeError: it cannot receive", "RuntimeError: it cannot prepare"]


def test_worker_is_healthy_while_it_waits_after_an_error():
    """A request that times out takes nearly as long as its health allows."""
    working = Working(connection=a_connection(clock=VirtualClock(NOW)))
    clock = working.connection.clock

    def fail(**_):
        clock.sleep(58)
        working.worker.stop()
        raise Unavailable("timed out")

    working.queue.receive = fail
    working.worker._receive()
    assert working.worker.heartbeat == clock.monotonic()


def test_error_around_a_handler_is_a_retry(monkeypatch):
    connection = a_connection(queue=a_queue(track=True))
    record = with_defects(connection.table.record, RuntimeError("a defect"))
    monkeypatch.setattr(connection.table, "record", record)
    with Working(due_now(1), connection=connection, concurrency=1) as working:
        assert wait_until(working.is_empty)
    assert [job.attempt for job, _ in working.starts] == [2]


def test_unreadable_pause_keeps_the_last_one(monkeypatch):
    working = Working()
    table = working.connection.table
    control.pause("emails", table=table, now=NOW)
    working.worker.open()
    monkeypatch.setattr(table, "read", failing(Throttled("slow down")))
    working.worker.apply_limits()
    assert [event.reason for event in working.events.of(EventKind.TROUBLE)] == [
        "pause and rate could not be read: slow down"
    ]
    assert not working.worker._limiter.is_open


def test_watch_goes_on_whatever_fails(monkeypatch):
    monkeypatch.setattr("dueline.worker.queue_worker.LONGEST_REFRESH_SECONDS", 0)
    monkeypatch.delattr("dueline.worker.queue_context.QueueContext.refresh")
    assert WATCH_SECONDS < 5
    with Working() as working:
        assert wait_until(lambda: len(working.events.of(EventKind.TROUBLE)) >= 2)
        control.pause("emails", table=working.connection.table, now=NOW)
        assert wait_until(lambda: not working.worker._limiter.is_open)


@pytest.mark.parametrize("change", [control.pause, partial(control.set_rate, rate=Rate.parse("2/m"))])
def test_pause_or_another_rate_returns_jobs_that_wait(change):
    connection = a_connection(queue=a_queue(precise=True))
    with Working(*due(0, 1, 2, later=600), connection=connection) as working:
        assert wait_until(lambda: len(working.events.of(EventKind.RECEIVED)) == 3)
        change("emails", table=connection.table, now=NOW)
        assert wait_until(lambda: len(working.events.of(EventKind.RETURNED)) >= 3)
    assert working.starts == []


def test_job_whose_slot_is_too_far_ahead_goes_back(monkeypatch):
    monkeypatch.setattr(RateLimiter, "slots", lambda _, count: [math.inf] * count)
    with Working(due_now(1)) as working:
        assert wait_until(lambda: bool(working.events.of(EventKind.RETURNED)))
    assert working.starts == []


def test_job_received_during_stop_goes_back(monkeypatch):
    working = Working(due_now(1, later=7200), connection=a_connection(queue=a_queue(precise=True)))
    pool = working.worker._pool
    put = pool.put

    def stopped_before(item, *, at):
        if isinstance(item, ReceivedMessage):
            working.worker.stop()
        put(item, at=at)

    monkeypatch.setattr(pool, "put", stopped_before)
    with working:
        assert wait_until(lambda: working.events.of(EventKind.RETURNED))
        assert wait_until(lambda: not working.worker.is_busy)
    assert working.queue.queue.depth().waiting == 1


def test_open_poll_ends_before_jobs_are_put_back():
    """It would receive them."""
    working, polls, ends = Working(), threading.Event(), threading.Event()
    working.queue.receive = lambda **_: polls.set() or ends.wait(HANG_SECONDS) or []
    with working:
        assert polls.wait(HANG_SECONDS)
        working.worker.stop()
        assert working.worker.is_busy
        threading.Timer(0.2, ends.set).start()
        assert working.finish()
        assert ends.is_set()


def test_stop_returns_waiting_jobs():
    connection, held = a_connection(queue=a_queue(precise=True)), threading.Event()
    jobs = due_now(0), due_now(1, later=600)
    with Working(*jobs, connection=connection, call=lambda _: held.wait(HANG_SECONDS)) as working:
        assert wait_until(lambda: len(working.starts) == 1 and len(working.events.of(EventKind.RECEIVED)) == 2)
        working.worker.stop()
        held.set()
        assert wait_until(lambda: not working.worker.is_busy)
        assert working.finish()
    assert working.numbers == [0]
    assert [message.body for message in working.queue.messages] == ["1"]
    assert working.queue.queue.depth().waiting == 1
