"""What is due in over an hour: no fence is read for it, and one request cancels it, whatever clocks say."""

from datetime import timedelta

import pytest

from dueline.core import partitions, rows
from dueline.core.clock import LatestTime
from dueline.core.job import State
from dueline.core.partitions import FAR, SIGNATURE_LIVES, checked_lookahead
from dueline.core.table_writer import TableWriter
from dueline.errors import Throttled
from dueline.testing import VirtualClock
from tests.builders import NOW, a_job, an_id
from tests.system import System
from tests.wire import on, straight

FAR_SECONDS, LIVES = FAR.total_seconds(), SIGNATURE_LIVES.total_seconds()
MILLISECOND = 0.001


def calls_of(system, *, during=None):
    """Return the calls of a system from now on; the first write calls `during` before it is answered."""
    calls = []

    def around(call):
        calls.append(call.name)
        answer = straight(call)
        if during and call.name in ("table.add", "table.write"):
            during()
        return answer

    system.wire.around = around
    return calls


def due_in(seconds):
    return NOW + timedelta(seconds=seconds)


def write(system, *jobs, have_rows=()):
    writer = TableWriter(table=system.table, dispatcher=system.dispatcher, clock=system.clock)
    return writer.write(jobs, until=float("inf"), have_rows=have_rows)


@pytest.mark.parametrize(("after", "is_far"), [(FAR_SECONDS, False), (FAR_SECONDS + MILLISECOND, True)])
def test_fence_is_read_unless_the_job_is_far(after, is_far):
    system = System()
    calls = calls_of(system)
    system.schedule(after)
    assert calls == ["table.add", *([] if is_far else ["table.read"])]


def test_fence_is_read_for_the_near_jobs_of_a_batch():
    system, near, far = System(), a_job(due=due_in(1800)), a_job(due=due_in(86_400))
    calls = calls_of(system)
    result = write(system, near, far)
    assert (calls, result.written, result.far) == (["table.write", "table.read"], {near, far}, {far})


def test_clock_is_read_after_the_answer():
    system, job = System(), a_job(due=due_in(FAR_SECONDS + 5))
    calls = calls_of(system, during=lambda: system.clock.sleep(5))
    write(system, job)
    assert calls == ["table.write", "table.read"]


def test_clock_that_was_set_back_makes_no_job_far():
    system, job = System(), a_job(due=due_in(1800))
    clock = VirtualClock(NOW)
    writer = TableWriter(table=system.table, dispatcher=system.dispatcher, clock=clock)
    calls = calls_of(system, during=lambda: setattr(clock, "_start", NOW - timedelta(hours=2)))
    writer.write_first(job, until=float("inf"))
    assert calls == ["table.add", "table.read"]


def test_row_that_another_request_has_put_is_not_far():
    system, job = System(), a_job(due=due_in(86_400))
    system.put(job)
    calls = calls_of(system)
    write(system, job, have_rows={job})
    assert calls == ["table.read"]


def test_far_job_is_cancelled_in_one_call():
    system, id = System(), an_id(due=due_in(FAR_SECONDS + LIVES + MILLISECOND))
    calls = calls_of(system)
    assert [system.cancel(id) for _ in range(2)] == [State.CANCELLED] * 2
    assert calls == ["table.add"] * 2


def test_near_job_is_promised_after_the_fence():
    system, id = System(), an_id(due=due_in(FAR_SECONDS + LIVES))
    calls = calls_of(system)
    assert system.cancel(id) is State.CANCELLED
    assert calls == ["table.add", "table.read", "table.mark_exact"]


def test_promise_of_a_far_job_is_to_be_signed_while_it_is_far():
    system, id, signed = System(), an_id(due=due_in(86_400)), []
    system.wire.around = lambda call: (signed.append(call.kwargs.get("signed_before")), straight(call))[1]
    system.cancel(id)
    assert signed == [id.due - FAR]


def test_far_cancel_finds_one_without_a_promise():
    """One that was near by its clock, and got no further than its first write."""
    system, id = System(), an_id(due=due_in(86_400))
    system.table.add(rows.cancellation_row(id, at=NOW))
    calls = calls_of(system)
    assert system.cancel(id) is State.CANCELLED
    assert calls == ["table.add", "table.read", "table.mark_exact"]


def test_far_job_that_was_moved_is_cancelled_as_it_is_now():
    system = System()
    old = system.schedule(86_400).id
    new = system.reschedule(old, delay=2 * 86_400)
    calls = calls_of(system)
    result = system.cancel_job(old)
    assert (result.id, result.state, result.moved_from) == (new, State.CANCELLED, old)
    assert calls == ["table.add"] * 2


def test_far_cancel_that_fails_promises_nothing():
    system, id = System(), an_id(due=due_in(86_400))

    def throttle(call):
        raise Throttled("slow down")

    system.wire.around = on("table.add", throttle)
    with pytest.raises(Throttled):
        system.cancel(id)


def test_latest_time_is_counted_on_when_a_clock_is_set_back():
    clock = VirtualClock(NOW)
    latest = LatestTime(clock)
    clock.sleep(3)
    assert latest.now() == NOW + timedelta(seconds=3)
    clock._start -= timedelta(hours=1)
    assert latest.now() == NOW + timedelta(seconds=3)
    clock._start += timedelta(hours=2)
    assert latest.now() == NOW + timedelta(hours=1, seconds=3)


def test_far_is_beyond_what_signatures_and_fences_allow():
    assert partitions.FAR >= 2 * partitions.SIGNATURE_LIVES + partitions.MOST_LOOKAHEAD


@pytest.mark.parametrize("seconds", [0, -1, 901])
def test_lookahead_with_which_nothing_is_far_is_refused(seconds):
    with pytest.raises(ValueError, match=f"lookahead is {seconds}: it must be from 1 to 900 seconds"):
        checked_lookahead(seconds)
    assert checked_lookahead(900) == timedelta(minutes=15)
