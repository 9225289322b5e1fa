"""A queue worker over queues in memory, with its threads, in real time."""

import contextlib
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dueline.errors import Throttled, Unavailable
from dueline.memory import MemoryTable
from dueline.model import rows
from dueline.model.control_rows import paused_key
from dueline.model.message import BATCH_MESSAGES, Message
from dueline.model.pointer import Pointer
from dueline.model.rate import Rate
from dueline.operate import control
from dueline.ports import READ_KEYS
from dueline.worker.handler_runner import Handler, HandlerRunner
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.rate_limiter import WATCH_SECONDS
from dueline.worker.verdict import Discard, Retry
from dueline.worker.watch.event import Kind
from tests.builders import NOW, a_message, a_queue
from tests.waiting import HANG_SECONDS
from tests.work import Events, SharedQueue, a_connection, due_now, wait_until


class Working:
    """A queue worker at work; `begun` has the jobs that its handler got, and when."""

    def __init__(self, connection, call=lambda job: None, *, once=False, concurrency=8):
        self.connection, self.events = connection, Events()
        self.queue, self.letters = connection.levels[0], connection.dead_letters
        self.begun = []
        self._call = call
        parts = {"report": self.events, "jitter": lambda: 0.5}
        handler = Handler(queue="emails", call=self._note, once=once)
        runner = HandlerRunner(handler, connection, trace=lambda *_, **__: contextlib.nullcontext(), **parts)
        self.worker = QueueWorker(connection, runner, concurrency=concurrency, wall=time.time, **parts)

    def _note(self, job):
        self.begun.append((job, datetime.now(UTC)))
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
        return self.worker.finish()

    @property
    def numbers(self):
        return [job.payload for job, _ in self.begun]

    def is_empty(self):
        return not self.queue.messages

    def turn(self):
        """Wait until it has asked anew whether there is room, and received what there was room for."""
        for _ in range(2):
            now = self.connection.clock.monotonic()
            assert wait_until(lambda now=now: self.worker.heartbeat > now)

    def look_at_the_controls(self):
        """Wait until it has applied a pause or a rate that was set before."""
        for _ in range(2):
            looks = self.connection.table.looks
            assert wait_until(lambda looks=looks: self.connection.table.looks > looks)


def sent(connection, *jobs):
    for job in jobs:
        assert connection.levels[0].send([Message.of(job)]) == []


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    """Four times as fast as deployed, and sooner after a fault: nobody waits for minutes."""
    monkeypatch.setattr("dueline.worker.receiver.LONG_POLL_SECONDS", 1)
    monkeypatch.setattr("dueline.worker.rate_limiter.WATCH_SECONDS", WATCH_SECONDS / 4)
    monkeypatch.setattr("dueline.worker.fetcher._FREE_THREAD_SECONDS", 0.2)
    monkeypatch.setattr("dueline.worker.fetcher._LONGEST_BACKOFF_SECONDS", 0.5)
    for module in ("fetcher", "prefetch", "processor"):
        monkeypatch.setattr(f"dueline.worker.{module}.RETRY_SECONDS", 1)


def test_every_job_is_handled_and_acknowledged_in_batches():
    connection = a_connection()
    sent(connection, *(due_now(number) for number in range(50)))
    with Working(connection) as working:
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == list(range(50))
    deletes = [count for what, count in working.queue.asked if what == "delete"]
    assert sum(deletes) == 50
    assert len(deletes) <= 15


def test_never_more_is_received_than_can_run():
    connection, held = a_connection(), threading.Event()
    sent(connection, *(due_now(number) for number in range(20)))
    with Working(connection, lambda _: held.wait(HANG_SECONDS), concurrency=3) as working:
        assert wait_until(lambda: len(working.begun) == 3)
        working.turn()
        assert len(working.events.of(Kind.RECEIVED)) == 3
        assert max(most for what, most in working.queue.asked if what == "receive") <= 3
        held.set()
        assert wait_until(working.is_empty)
    assert len(working.begun) == 20


def test_each_job_succeeds_or_fails_alone():
    def call(job):
        if job.payload == 1:
            raise TypeError("no")
        if job.payload == 2:
            raise Discard("why")

    connection = a_connection()
    sent(connection, *(due_now(number) for number in range(5)))
    with Working(connection, call) as working:
        assert wait_until(working.is_empty)
    assert Counter(working.numbers) == {0: 1, 1: 3, 2: 1, 3: 1, 4: 1}
    letters = {
        letter.body: (letter.attributes["dueline-error"], letter.attributes["dueline-attempts"])
        for letter in working.letters.messages
    }
    assert letters == {"1": ("TypeError", "3"), "2": ("Discard", "1")}


def test_a_job_comes_back_after_the_delay_that_its_handler_asked_for():
    def call(job):
        if job.attempt == 1:
            raise Retry(2)

    connection = a_connection()
    sent(connection, due_now())
    with Working(connection, call) as working:
        assert wait_until(working.is_empty)
    (_, first), (_, second) = working.begun
    assert (second - first).total_seconds() >= 1.9


def test_a_cancelled_job_is_skipped_and_its_message_deleted():
    connection, cancelled = a_connection(), due_now(1)
    connection.table.write([rows.cancellation_row(cancelled.id, at=NOW)])
    sent(connection, due_now(0), cancelled)
    with Working(connection) as working:
        assert wait_until(working.is_empty)
    assert working.numbers == [0]
    assert [event.job for event in working.events.of(Kind.SKIPPED)] == [str(cancelled.id)]


def cancel(connection, *jobs):
    connection.table.write([rows.cancellation_row(job.id, at=NOW) for job in jobs])


def test_a_job_that_is_cancelled_while_it_waits_until_it_is_due_is_skipped():
    connection, job = a_connection(queue=a_queue(precise=True)), due_now(1, later=4)
    sent(connection, job)
    with Working(connection) as working:
        assert wait_until(lambda: len(working.events.of(Kind.RECEIVED)) == 1)
        cancel(connection, job)
        assert wait_until(working.is_empty)
    assert working.begun == []
    assert [event.job for event in working.events.of(Kind.SKIPPED)] == [str(job.id)]


def test_a_job_that_is_cancelled_while_it_waits_for_its_slot_is_skipped():
    connection, jobs = a_connection(), [due_now(0), due_now(1)]
    control.set_rate("emails", Rate.parse("15/m"), table=connection.table, now=NOW)
    with Working(connection) as one, Working(connection) as two:
        # Either has a job whose slot is seconds away, or none at all.
        sent(connection, *jobs)
        assert wait_until(lambda: len(one.begun) + len(two.begun) == 1)
        (begun,) = one.numbers + two.numbers
        cancel(connection, jobs[1 - begun])
        assert wait_until(one.is_empty)
    assert len(one.begun) + len(two.begun) == 1


def test_a_job_that_waited_and_whose_cancellation_cannot_be_read_then_is_held_and_no_attempt_is_counted():
    connection = a_connection(queue=a_queue(precise=True))
    outage = Outage(connection.table, None)
    sent(connection, due_now(1, later=4))
    with Working(connection) as working:
        assert wait_until(lambda: len(working.events.of(Kind.RECEIVED)) == 1)
        outage.fault = Throttled("slow down")
        assert wait_until(lambda: outage.asked == 3)
        assert working.begun == []
        outage.fault = None
        assert wait_until(working.is_empty)
    assert [(job.payload, job.attempt) for job, _ in working.begun] == [(1, 1)]


def test_what_is_held_after_it_waited_goes_back_when_it_is_told_to_stop():
    connection = a_connection(queue=a_queue(precise=True))
    outage = Outage(connection.table, None)
    sent(connection, due_now(1, later=4))
    with Working(connection) as working:
        assert wait_until(lambda: len(working.events.of(Kind.RECEIVED)) == 1)
        outage.fault = Throttled("slow down")
        assert wait_until(lambda: outage.asked == 2)
        assert working.end()
    assert working.queue.queue.depth().waiting == 1


def test_a_precise_queue_holds_a_job_until_it_is_due():
    connection = a_connection(queue=a_queue(precise=True))
    jobs = [due_now(number, later=1 + number / 10) for number in range(5)]
    sent(connection, *jobs)
    with Working(connection) as working:
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == [0, 1, 2, 3, 4]
    assert all(at >= job.due for job, at in working.begun)


def test_a_message_that_carries_no_job_of_ours_is_processed_and_one_that_cannot_be_read_is_dead():
    connection = a_connection()
    connection.levels[0].send([a_message(body="[1]"), a_message(attributes={"dueline-id": "nonsense"})])
    with Working(connection) as working:
        assert wait_until(working.is_empty)
    assert working.numbers == [[1]]
    assert [letter.attributes["dueline-error"] for letter in working.letters.messages] == ["InvalidJob"]


def test_a_long_job_keeps_its_claim():
    # Renewed at the half of it: a machine may stand still for four seconds.
    connection = a_connection(SharedQueue(visibility_timeout=8), visibility_timeout=8)
    sent(connection, due_now())

    def is_renewed():
        return any(what == "hide" for what, _ in connection.levels[0].asked)

    with Working(connection, lambda _: wait_until(is_renewed)) as working:
        assert wait_until(working.is_empty)
    assert len(working.begun) == 1
    assert not working.events.of(Kind.LOST)


def test_the_delay_of_a_retry_is_not_undone_by_a_renewal_that_was_on_its_way():
    hidden, renewing = [], threading.Event()

    class Slow(SharedQueue):
        """A renewal takes its time, and has its effect at the end of it."""

        def hide(self, receipts, seconds):
            if seconds[0] < 60:
                renewing.set()
                time.sleep(0.5)
            hidden.append(seconds[0])
            return super().hide(receipts, seconds)

    def call(job):
        assert renewing.wait(HANG_SECONDS)
        raise Retry(3600)

    connection = a_connection(Slow(visibility_timeout=8), visibility_timeout=8)
    sent(connection, due_now())
    with Working(connection, call) as working:
        assert wait_until(lambda: len(hidden) == 2)
        assert not working.events.of(Kind.LOST)
    assert hidden == [8, 3600]


def test_a_lost_claim_is_told_to_the_handler_and_what_it_lost_is_not_acknowledged():
    seen = []

    def call(job):
        if job.attempt == 1:
            wait_until(lambda: job.is_claim_lost)
            seen.append(job.is_claim_lost)

    connection = a_connection(SharedQueue(visibility_timeout=2), visibility_timeout=2, longest_run=2)
    sent(connection, due_now())
    with Working(connection, call) as working:
        assert wait_until(lambda: len(seen) == 1)
        assert wait_until(working.is_empty)
    # A slow machine may lose more of them.
    attempts = [job.attempt for job, _ in working.begun]
    assert attempts == list(range(1, max(2, len(attempts)) + 1))
    assert len(working.events.of(Kind.LOST)) == len(attempts) - 1
    assert sum(count for what, count in working.queue.asked if what == "delete") == 1


def test_who_lost_the_claim_sends_no_dead_letter():
    def call(job):
        if job.attempt == 1:
            wait_until(lambda: job.is_claim_lost)
            raise Discard("too late to say so")

    connection = a_connection(SharedQueue(visibility_timeout=2), visibility_timeout=2, longest_run=2)
    sent(connection, due_now())
    with Working(connection, call) as working:
        assert wait_until(working.is_empty)
    assert working.letters.messages == []


def test_what_does_not_run_reserves_no_thread():
    connection, cancelled = a_connection(), [due_now() for _ in range(10)]
    connection.table.write([rows.cancellation_row(job.id, at=NOW) for job in cancelled])
    sent(connection, *cancelled)
    with Working(connection, concurrency=3) as working:
        assert wait_until(working.is_empty)
        sent(connection, *(due_now(number) for number in range(5)))
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == [0, 1, 2, 3, 4]


def test_a_dead_letter_that_fails_is_sent_again_and_the_handler_runs_no_more():
    connection = a_connection()
    letters = connection.dead_letters.queue
    letters.gone = True
    sent(connection, due_now())

    def call(job):
        raise Discard("why")

    with Working(connection, call) as working:
        assert wait_until(lambda: len(working.events.of(Kind.TROUBLE)) == 3)
        ((job, _),) = working.begun
        assert job.claim.begun is None, "or it would be renewed for longest_run only"
        letters.gone = False
        assert wait_until(working.is_empty)
    assert len(working.begun) == len(working.letters.messages) == 1


def test_a_message_that_cannot_be_read_nor_put_into_the_dead_letter_queue_holds_nothing_up():
    connection = a_connection()
    letters = connection.dead_letters.queue
    letters.gone = True
    connection.levels[0].send([a_message(attributes={"dueline-id": "nonsense"})])
    with Working(connection) as working:
        assert wait_until(lambda: bool(working.events.of(Kind.TROUBLE)))
        sent(connection, due_now(1))
        assert wait_until(lambda: working.numbers == [1])
        letters.gone = False
        assert wait_until(working.is_empty)
    assert len(working.letters.messages) == 1


def test_while_no_dead_letter_can_be_sent_not_ever_more_is_received():
    def call(job):
        raise Discard("why")

    connection = a_connection()
    connection.dead_letters.queue.gone = True
    sent(connection, *(due_now(number) for number in range(5)))
    with Working(connection, call, concurrency=2) as working:
        assert wait_until(lambda: len(working.events.of(Kind.TROUBLE)) == 6)
        assert len(working.begun) == 2
        connection.dead_letters.queue.gone = False
        assert wait_until(working.is_empty)


def test_when_stopped_it_still_sends_dead_letters():
    def call(job):
        raise Discard("why")

    connection = a_connection()
    letters = connection.dead_letters.queue
    letters.gone = True
    sent(connection, due_now())
    working = Working(connection, call)
    working.worker.open()
    working.worker.start()
    assert wait_until(lambda: bool(working.events.of(Kind.TROUBLE)))
    letters.gone = False
    assert working.end()
    assert (len(working.begun), len(working.letters.messages), working.is_empty()) == (1, 1, True)


class Outage:
    """Makes a table's cancellations unreadable while `fault` is set; counts how often they were asked for."""

    def __init__(self, table, fault):
        self.fault, self.asked, self._read = fault, 0, table.read
        table.read = self

    def __call__(self, keys, **given):
        if self.fault and keys and keys[0][1].endswith("#cancelled"):
            self.asked += 1
            raise self.fault
        return self._read(keys, **given)


@pytest.mark.parametrize("rate", [None, "50/s"])
def test_while_its_cancellations_cannot_be_read_a_job_is_held_and_no_attempt_is_counted(rate):
    connection = a_connection()
    if rate:
        control.set_rate("emails", Rate.parse(rate), table=connection.table, now=NOW)
    outage = Outage(connection.table, Unavailable("down"))
    sent(connection, *(due_now(number) for number in range(3)))
    with Working(connection, concurrency=40) as working:
        assert wait_until(lambda: outage.asked == 2)
        sent(connection, *(due_now(number) for number in range(3, 30)))
        assert wait_until(lambda: outage.asked == 5)
        receives = [delivery.receives for delivery in working.queue.queue.deliveries]
        assert set(receives) == {0, 1}
        assert sum(receives) <= 3 + BATCH_MESSAGES, "more than what one poll had begun to ask for"
        outage.fault = None
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == list(range(30))
    assert {job.attempt for job, _ in working.begun} == {1}


def failing_first(times, then):
    """Return a function that AWS fails the first so many times, and the count of those that are left."""
    left = [times]

    def call(*args):
        if left[0]:
            left[0] -= 1
            raise Unavailable("SlowDown")
        return then(*args)

    return call


@pytest.mark.parametrize("what", ["payload", "once"])
def test_while_its_payload_or_its_note_of_once_fails_a_job_is_held_and_no_attempt_is_counted(what):
    connection, job = a_connection(max_receives=1), due_now(1)
    if what == "payload":
        connection.read_payload = failing_first(3, lambda pointer: "1")
        job = replace(job, payload=Pointer(bucket="b", key="k").text, offloaded_bytes=300_000)
    else:
        connection.once = failing_first(3, connection.once)
    sent(connection, job)
    with Working(connection, once=what == "once") as working:
        assert wait_until(working.is_empty)
    assert [(job.payload, job.attempt) for job, _ in working.begun] == [(1, 1)]
    assert working.letters.messages == []
    reasons = [event.reason for event in working.events.of(Kind.TROUBLE)]
    assert reasons == ["it could not begin, and is held: SlowDown"] * 3


def test_what_could_not_begin_goes_back_when_it_is_told_to_stop():
    connection = a_connection()
    connection.once = failing_first(10**9, connection.once)
    sent(connection, due_now())
    with Working(connection, once=True) as working:
        assert wait_until(lambda: bool(working.events.of(Kind.TROUBLE)))
        assert working.end()
    assert working.queue.queue.depth().waiting == 1


def test_what_is_held_goes_back_when_it_is_told_to_stop():
    connection = a_connection()
    outage = Outage(connection.table, Throttled("slow down"))
    sent(connection, due_now())
    with Working(connection) as working:
        assert wait_until(lambda: outage.asked == 2)
        assert working.end()
    assert working.queue.queue.depth().waiting == 1


def test_new_settings_apply_while_it_works(monkeypatch):
    monkeypatch.setattr("dueline.worker.refresh.LONGEST_SECONDS", 0.1)
    connection = a_connection()
    connection.reload = lambda: a_connection(visibility_timeout=60)
    with Working(connection) as working:
        assert wait_until(lambda: connection.settings.visibility_timeout == 60)
        assert wait_until(lambda: len(working.events.of(Kind.CHANGED)) == 1)


def test_whatever_goes_wrong_where_it_receives_or_prepares_it_is_reported_and_goes_on(monkeypatch):
    connection, faults = a_connection(), {"receive": 1, "prepare": 1}
    receive, read = connection.levels[0].receive, connection.table.read

    def fail_first(what, call):
        def failing(*args, **given):
            is_asked = what == "receive" or (args[0] and args[0][0][1].endswith("#cancelled"))
            if is_asked and faults[what]:
                faults[what] -= 1
                raise RuntimeError(f"a defect where it {what}s")
            return call(*args, **given)

        return failing

    connection.levels[0].receive = fail_first("receive", receive)
    monkeypatch.setattr(connection.table, "read", fail_first("prepare", read))
    sent(connection, due_now(1))
    with Working(connection) as working:
        assert wait_until(working.is_empty)
    # Put back, and counted: what is no fault of AWS's may be the job's own, and must not hold its queue up for good.
    assert [(job.payload, job.attempt) for job, _ in working.begun] == [(1, 2)]
    reasons = [event.reason for event in working.events.of(Kind.TROUBLE)]
    assert reasons == ["RuntimeError: a defect where it receives", "RuntimeError: a defect where it prepares"]


def test_whatever_goes_wrong_around_a_handler_its_job_comes_again(monkeypatch):
    connection, faults = a_connection(queue=a_queue(track=True)), [1]
    record = connection.table.record

    def fail_first(row):
        if faults:
            faults.pop()
            raise RuntimeError("a defect")
        return record(row)

    monkeypatch.setattr(connection.table, "record", fail_first)
    sent(connection, due_now(1))
    with Working(connection, concurrency=1) as working:
        assert wait_until(working.is_empty)
    assert [job.attempt for job, _ in working.begun] == [2]


class Watched(MemoryTable):
    """A table that counts how often a queue's pause and rate are looked at."""

    looks = 0

    def read(self, keys, **given):
        self.looks += any(key == paused_key("emails") for key in keys)
        return super().read(keys, **given)


@pytest.fixture
def watched():
    return replace(a_connection(), table=Watched())


def test_pause_and_resume_take_hold_while_it_works(watched):
    assert WATCH_SECONDS < 5
    with Working(watched) as working:
        control.pause("emails", table=watched.table, now=NOW)
        working.look_at_the_controls()
        # What was asked for before is answered.
        working.turn()
        sent(watched, *(due_now(number) for number in range(5)))
        working.turn()
        assert working.begun == []
        assert not working.events.of(Kind.RECEIVED)
        control.resume("emails", table=watched.table, now=NOW)
        assert wait_until(working.is_empty)


def test_jobs_that_wait_for_their_slot_are_put_back_when_the_queue_is_paused():
    connection = a_connection()
    control.set_rate("emails", Rate.parse("1/h"), table=connection.table, now=NOW)
    sent(connection, *(due_now(number) for number in range(3)))
    with Working(connection) as working:
        assert wait_until(lambda: len(working.begun) == 1)
        control.pause("emails", table=connection.table, now=NOW)
        assert wait_until(lambda: connection.levels[0].queue.depth().waiting == 2)
        assert len(working.begun) == 1


def test_a_new_rate_applies_to_what_waits_for_a_slot_of_the_old():
    connection = a_connection()
    control.set_rate("emails", Rate.parse("1/h"), table=connection.table, now=NOW)
    sent(connection, *(due_now(number) for number in range(3)))
    with Working(connection) as working:
        assert wait_until(lambda: len(working.begun) == 1)
        control.set_rate("emails", Rate.parse("50/s"), table=connection.table, now=datetime.now(UTC))
        assert wait_until(working.is_empty)


def test_a_job_that_is_put_into_the_pool_as_its_worker_stops_is_put_back(monkeypatch):
    connection = a_connection(queue=a_queue(precise=True))
    working = Working(connection)
    pool = working.worker._pool
    put = pool.put

    def stopped_before(item, *, at):
        working.worker.stop()
        put(item, at=at)

    monkeypatch.setattr(pool, "put", stopped_before)
    sent(connection, due_now(1, later=7200))
    with working:
        assert wait_until(lambda: working.events.of(Kind.RETURNED))
        assert wait_until(lambda: not working.worker.is_busy)
    assert connection.levels[0].queue.depth().waiting == 1


def test_what_waits_is_held_while_no_slots_of_another_rate_can_be_taken_and_is_reported_as_received_once(monkeypatch):
    connection, faults, slots = a_connection(queue=a_queue(precise=True)), [], []
    reserve = connection.table.reserve

    def fail_twice(*args, **given):
        if len(faults) < 2:
            faults.append(1)
            raise Throttled("slow down")
        slots.append(given["amount"] / 20_000)
        return reserve(*args, **given)

    monkeypatch.setattr(connection.table, "reserve", fail_twice)
    count = READ_KEYS + 20
    sent(connection, *(due_now(number, later=300) for number in range(count)))
    with Working(connection, concurrency=200) as working:
        assert wait_until(lambda: len(working.events.of(Kind.RECEIVED)) == count)
        control.set_rate("emails", Rate.parse("50/s"), table=connection.table, now=datetime.now(UTC))
        assert wait_until(lambda: len(faults) == 2 and sum(slots) >= count)
        assert len(working.events.of(Kind.RECEIVED)) == count
        assert [delivery.receives for delivery in working.queue.queue.deliveries] == [1] * count
        assert not working.events.of(Kind.RETURNED)


def test_whatever_goes_wrong_where_a_rate_is_applied_what_waits_runs_and_the_next_change_is_applied(monkeypatch):
    connection, faults = a_connection(queue=a_queue(precise=True)), []
    reserve = connection.table.reserve

    def fail_first(*args, **given):
        if not faults:
            faults.append(1)
            raise KeyError("Attributes")
        return reserve(*args, **given)

    monkeypatch.setattr(connection.table, "reserve", fail_first)
    sent(connection, due_now(1, later=6))
    with Working(connection) as working:
        assert wait_until(lambda: len(working.events.of(Kind.RECEIVED)) == 1)
        control.set_rate("emails", Rate.parse("50/s"), table=connection.table, now=datetime.now(UTC))
        assert wait_until(working.is_empty)
        assert faults
        control.pause("emails", table=connection.table, now=NOW)
        assert wait_until(lambda: not working.worker._limiter.is_open)
    assert working.numbers == [1]


def test_two_workers_keep_a_rate_together():
    connection = a_connection()
    control.set_rate("emails", Rate.parse("40/s"), table=connection.table, now=NOW)
    sent(connection, *(due_now(number) for number in range(200)))
    started = datetime.now(UTC)
    with Working(connection) as one, Working(connection) as two:
        assert wait_until(lambda: len(one.begun) + len(two.begun) >= 120)
    begun = sorted(at for _, at in one.begun + two.begun)
    assert (begun[119] - started).total_seconds() >= 2.8
    assert one.begun
    assert two.begun


def test_told_to_stop_it_ends_what_runs_and_puts_back_what_has_not_begun():
    connection, held = a_connection(queue=a_queue(precise=True)), threading.Event()
    sent(connection, due_now(0), due_now(1, later=600))
    working = Working(connection, lambda _: held.wait(HANG_SECONDS))
    with working:
        assert wait_until(lambda: len(working.begun) == 1 and len(working.events.of(Kind.RECEIVED)) == 2)
        working.worker.stop()
        held.set()
        assert wait_until(lambda: not working.worker.is_busy)
        assert working.worker.finish()
    assert working.numbers == [0]
    assert [message.body for message in working.queue.messages] == ["1"]
    assert working.queue.queue.depth().waiting == 1


def test_what_does_not_end_within_its_grace_goes_back():
    connection, held = a_connection(), threading.Event()
    sent(connection, due_now())
    working = Working(connection, lambda _: held.wait(HANG_SECONDS))
    working.worker.open()
    working.worker.start()
    assert wait_until(lambda: len(working.begun) == 1)
    working.worker.stop()
    assert working.worker.finish() is False
    assert working.queue.queue.depth().waiting == 1
    held.set()


def fails_once(job):
    if job.attempt == 1:
        raise Retry(1)


def test_a_job_of_a_schedule_is_skipped_while_the_last_one_waits_for_its_retry():
    connection = a_connection()
    last, following = (due_now(n, schedule="digest", nominal=NOW, exclusive=True) for n in range(2))
    sent(connection, last)
    with Working(connection, fails_once) as working:
        assert wait_until(lambda: len(working.events.of(Kind.RETRIED)) == 1)
        sent(connection, following)
        assert wait_until(working.is_empty)
    assert working.numbers == [0, 0]
    assert [event.job for event in working.events.of(Kind.OVERLAPPED)] == [str(following.id)]
    assert connection.locks.held == {}
