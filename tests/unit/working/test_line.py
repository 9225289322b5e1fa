"""A line over queues in memory, with its threads, in real time."""

import contextlib
import threading
import time
from collections import Counter
from datetime import UTC, datetime

import pytest

from dueline import control, rows
from dueline.errors import Throttled
from dueline.message import Message
from dueline.rate import Rate
from dueline.working.event import Kind
from dueline.working.gate import WATCH_SECONDS
from dueline.working.handling import Handler, Handling
from dueline.working.line import Line
from dueline.working.verdict import Discard, Retry
from tests.builders import NOW, a_message, a_queue
from tests.work import Events, SharedQueue, a_place, due_now, wait_until

HEEDED_SECONDS = 5 / 4


class Working:
    """A line at work; `jobs` are those that its handler got, and when."""

    def __init__(self, place, call=lambda job: None, *, once=False, concurrency=8):
        self.place, self.events = place, Events()
        self.queue, self.letters = place.levels[0], place.dead_letters
        self.begun = []
        self._call = call
        parts = {"report": self.events, "jitter": lambda: 0.5}
        handler = Handler(queue="emails", call=self._note, once=once)
        handling = Handling(handler, place, trace=lambda *_, **__: contextlib.nullcontext(), **parts)
        self.line = Line(place, handling, concurrency=concurrency, wall=time.time, **parts)

    def _note(self, job):
        self.begun.append((job, datetime.now(UTC)))
        self._call(job)

    def __enter__(self):
        self.line.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.line.stop()
        wait_until(lambda: not self.line.is_busy, seconds=8)
        return self.line.finish()

    @property
    def numbers(self):
        return [job.payload for job, _ in self.begun]

    def is_empty(self):
        return not self.queue.messages


def sent(place, *jobs):
    for job in jobs:
        assert place.levels[0].send([Message.of(job)]) == []


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    """Four times as fast as deployed, and sooner after a fault: nobody waits for minutes."""
    monkeypatch.setattr("dueline.working.receiver.LONG_POLL_SECONDS", 1)
    monkeypatch.setattr("dueline.working.gate.WATCH_SECONDS", WATCH_SECONDS / 4)
    monkeypatch.setattr("dueline.working.line._AGAIN_SECONDS", 1)
    monkeypatch.setattr("dueline.working.line._LONGEST_BACKOFF_SECONDS", 0.5)


def test_every_job_is_handled_and_acknowledged_in_batches():
    place = a_place()
    sent(place, *(due_now(number) for number in range(50)))
    with Working(place) as working:
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == list(range(50))
    deletes = [count for what, count in working.queue.asked if what == "delete"]
    assert sum(deletes) == 50
    assert len(deletes) <= 15


def test_never_more_is_received_than_can_run():
    place, held = a_place(), threading.Event()
    sent(place, *(due_now(number) for number in range(20)))
    with Working(place, lambda _: held.wait(10), concurrency=3) as working:
        assert wait_until(lambda: len(working.begun) == 3)
        time.sleep(0.3)
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

    place = a_place()
    sent(place, *(due_now(number) for number in range(5)))
    with Working(place, call) as working:
        assert wait_until(working.is_empty)
    assert Counter(working.numbers) == {0: 1, 1: 3, 2: 1, 3: 1, 4: 1}
    told = {
        letter.body: (letter.attributes["dueline-error"], letter.attributes["dueline-attempts"])
        for letter in working.letters.messages
    }
    assert told == {"1": ("TypeError", "3"), "2": ("Discard", "1")}


def test_a_job_comes_back_after_the_delay_that_its_handler_asked_for():
    def call(job):
        if job.attempt == 1:
            raise Retry(2)

    place = a_place()
    sent(place, due_now())
    with Working(place, call) as working:
        assert wait_until(working.is_empty)
    (_, first), (_, second) = working.begun
    assert 1.9 <= (second - first).total_seconds() < 3.5


def test_a_cancelled_job_is_skipped_and_its_message_deleted():
    place, cancelled = a_place(), due_now(1)
    place.table.write([rows.cancellation_row(cancelled.id, at=NOW)])
    sent(place, due_now(0), cancelled)
    with Working(place) as working:
        assert wait_until(working.is_empty)
    assert working.numbers == [0]
    assert [event.job for event in working.events.of(Kind.SKIPPED)] == [str(cancelled.id)]


def test_a_precise_queue_holds_a_job_until_it_is_due_and_not_much_longer():
    place = a_place(queue=a_queue(precise=True))
    jobs = [due_now(number, later=1 + number / 10) for number in range(5)]
    sent(place, *jobs)
    with Working(place) as working:
        assert wait_until(working.is_empty)
    assert working.numbers == [0, 1, 2, 3, 4]
    late = [(at - job.due).total_seconds() for job, at in working.begun]
    assert all(0 <= each < 0.2 for each in late), late


def test_a_message_that_carries_no_job_of_ours_is_handled_and_one_that_lies_is_dead():
    place = a_place()
    place.levels[0].send([a_message(body="[1]"), a_message(attributes={"dueline-id": "nonsense"})])
    with Working(place) as working:
        assert wait_until(working.is_empty)
    assert working.numbers == [[1]]
    assert [letter.attributes["dueline-error"] for letter in working.letters.messages] == ["InvalidJob"]


def test_a_long_job_keeps_its_claim():
    place = a_place(SharedQueue(visibility_timeout=2), visibility_timeout=2)
    sent(place, due_now())
    with Working(place, lambda _: time.sleep(3.5)) as working:
        assert wait_until(working.is_empty)
    assert len(working.begun) == 1
    assert not working.events.of(Kind.LOST)


def test_a_lost_claim_is_told_to_the_handler_and_what_it_lost_is_not_acknowledged():
    seen = []

    def call(job):
        if job.attempt == 1:
            wait_until(lambda: job.is_claim_lost, seconds=8)
            seen.append(job.is_claim_lost)

    place = a_place(SharedQueue(visibility_timeout=2), visibility_timeout=2, longest_run=2)
    sent(place, due_now())
    with Working(place, call) as working:
        assert wait_until(lambda: len(seen) == 1)
        assert wait_until(working.is_empty, seconds=15)
    assert [job.attempt for job, _ in working.begun] == [1, 2]
    assert len(working.events.of(Kind.LOST)) == 1
    assert sum(count for what, count in working.queue.asked if what == "delete") == 1


def test_who_lost_the_claim_does_not_bury_anothers_job():
    def call(job):
        if job.attempt == 1:
            wait_until(lambda: job.is_claim_lost, seconds=8)
            raise Discard("too late to say so")

    place = a_place(SharedQueue(visibility_timeout=2), visibility_timeout=2, longest_run=2)
    sent(place, due_now())
    with Working(place, call) as working:
        assert wait_until(working.is_empty, seconds=15)
    assert working.letters.messages == []


def test_what_does_not_run_takes_no_place():
    place, cancelled = a_place(), [due_now() for _ in range(10)]
    place.table.write([rows.cancellation_row(job.id, at=NOW) for job in cancelled])
    sent(place, *cancelled)
    with Working(place, concurrency=3) as working:
        assert wait_until(working.is_empty)
        sent(place, *(due_now(number) for number in range(5)))
        assert wait_until(working.is_empty)
    assert sorted(working.numbers) == [0, 1, 2, 3, 4]


def test_a_job_that_cannot_be_buried_stays_and_is_tried_again():
    place = a_place()
    letters = place.dead_letters.queue
    letters.gone = True
    sent(place, due_now())

    def call(job):
        raise Discard("why")

    with Working(place, call) as working:
        assert wait_until(lambda: bool(working.events.of(Kind.TROUBLE)))
        letters.gone = False
        assert wait_until(working.is_empty, seconds=15)
    assert len(working.letters.messages) == 1


def test_what_was_received_goes_back_when_its_cancellations_cannot_be_read(monkeypatch):
    place, read, faults = a_place(), None, [1]
    read = place.table.read

    def sometimes(keys, **given):
        if len(faults) == 1 and keys and keys[0][1].endswith("#cancelled"):
            faults.append(1)
            raise Throttled("slow down")
        return read(keys, **given)

    monkeypatch.setattr(place.table, "read", sometimes)
    sent(place, due_now())
    with Working(place) as working:
        assert wait_until(working.is_empty, seconds=15)
    assert [job.attempt for job, _ in working.begun] == [2]


def test_whatever_goes_wrong_where_it_receives_or_prepares_it_is_told_and_goes_on(monkeypatch):
    place, faults = a_place(), {"receive": 1, "prepare": 1}
    receive, read = place.levels[0].receive, place.table.read

    def fail_first(what, call):
        def failing(*args, **given):
            is_asked = what == "receive" or (args[0] and args[0][0][1].endswith("#cancelled"))
            if is_asked and faults[what]:
                faults[what] -= 1
                raise RuntimeError(f"a defect where it {what}s")
            return call(*args, **given)

        return failing

    place.levels[0].receive = fail_first("receive", receive)
    monkeypatch.setattr(place.table, "read", fail_first("prepare", read))
    sent(place, due_now(1))
    with Working(place) as working:
        assert wait_until(working.is_empty, seconds=15)
    assert working.numbers == [1]
    told = [event.reason for event in working.events.of(Kind.TROUBLE)]
    assert told == ["RuntimeError: a defect where it receives", "RuntimeError: a defect where it prepares"]


def test_whatever_goes_wrong_around_a_handler_its_job_comes_again(monkeypatch):
    place, faults = a_place(queue=a_queue(track=True)), [1]
    record = place.table.record

    def fail_first(row):
        if faults:
            faults.pop()
            raise RuntimeError("a defect")
        return record(row)

    monkeypatch.setattr(place.table, "record", fail_first)
    sent(place, due_now(1))
    with Working(place, concurrency=1) as working:
        assert wait_until(working.is_empty, seconds=15)
    assert [job.attempt for job, _ in working.begun] == [2]


def test_pause_and_resume_take_hold_within_5_s():
    place = a_place()
    with Working(place) as working:
        control.pause("emails", table=place.table, now=NOW)
        time.sleep(HEEDED_SECONDS)
        sent(place, *(due_now(number) for number in range(5)))
        time.sleep(1)
        assert working.begun == []
        assert not working.events.of(Kind.RECEIVED)
        control.resume("emails", table=place.table, now=NOW)
        assert wait_until(working.is_empty, seconds=HEEDED_SECONDS)


def test_jobs_that_wait_for_their_slot_are_put_back_when_the_queue_is_paused():
    place = a_place()
    control.set_rate("emails", Rate.parse("6/m"), table=place.table, now=NOW)
    sent(place, *(due_now(number) for number in range(3)))
    with Working(place) as working:
        assert wait_until(lambda: len(working.begun) == 1)
        control.pause("emails", table=place.table, now=NOW)
        time.sleep(HEEDED_SECONDS)
        assert len(working.begun) == 1
        assert working.place.levels[0].queue.depth().waiting == 2


def test_another_rate_is_heeded_by_what_waits_for_a_slot_of_the_old():
    place = a_place()
    control.set_rate("emails", Rate.parse("1/h"), table=place.table, now=NOW)
    sent(place, *(due_now(number) for number in range(3)))
    with Working(place) as working:
        assert wait_until(lambda: len(working.begun) == 1)
        control.set_rate("emails", Rate.parse("50/s"), table=place.table, now=datetime.now(UTC))
        assert wait_until(working.is_empty, seconds=HEEDED_SECONDS)


def test_two_workers_keep_a_rate_together():
    place = a_place()
    control.set_rate("emails", Rate.parse("40/s"), table=place.table, now=NOW)
    sent(place, *(due_now(number) for number in range(200)))
    with Working(place) as one, Working(place) as two:
        assert wait_until(lambda: len(one.begun) + len(two.begun) == 120)
    begun = sorted(at for _, at in one.begun + two.begun)[:120]
    assert 2.8 <= (begun[-1] - begun[0]).total_seconds() <= 3.3
    assert min(len(one.begun), len(two.begun)) > 10


def test_told_to_stop_it_ends_what_runs_and_puts_back_what_has_not_begun():
    place, held = a_place(queue=a_queue(precise=True)), threading.Event()
    sent(place, due_now(0), due_now(1, later=30))
    working = Working(place, lambda _: held.wait(10))
    with working:
        assert wait_until(lambda: len(working.begun) == 1 and len(working.events.of(Kind.RECEIVED)) == 2)
        working.line.stop()
        held.set()
        assert wait_until(lambda: not working.line.is_busy)
        assert working.line.finish()
    assert working.numbers == [0]
    assert [message.body for message in working.queue.messages] == ["1"]
    assert working.queue.queue.depth().waiting == 1


def test_what_does_not_end_within_its_grace_goes_back():
    place, held = a_place(), threading.Event()
    sent(place, due_now())
    working = Working(place, lambda _: held.wait(10))
    working.line.start()
    assert wait_until(lambda: len(working.begun) == 1)
    working.line.stop()
    assert working.line.finish() is False
    assert working.queue.queue.depth().waiting == 1
    held.set()
