"""What is due in over an hour: no fence is read for it, and one request cancels it, whatever clocks say."""

import math
from datetime import timedelta
from functools import partial

import pytest

from dueline.config.environment import checked_lookahead
from dueline.core import partitions
from dueline.core.partitions import FAR, SIGNED_WITHIN
from dueline.core.table_writer import TableWriter
from dueline.errors import Unavailable
from dueline.testing import VirtualClock
from tests.builders import NOW, due_in
from tests.system import System
from tests.wire import failing, on, straight

FAR_SECONDS = FAR.total_seconds()
MILLISECOND = 0.001


def write(system, *jobs, have_rows=()):
    return system.a_route().write(jobs, until=math.inf, have_rows=have_rows)


@pytest.mark.parametrize(("after", "is_far"), [(FAR_SECONDS, False), (FAR_SECONDS + MILLISECOND, True)])
def test_fence_is_read_unless_the_job_is_far(system, after, is_far):
    calls = system.calls()
    system.schedule(after)
    assert calls == ["table.add", *([] if is_far else ["table.read"])]


def test_fence_is_read_for_the_near_jobs_of_a_batch():
    system, near, far = System(), due_in(1800), due_in(86_400)
    calls = system.calls()
    result = write(system, near, far)
    assert (calls, result.written, result.far) == (["table.write", "table.read"], {near, far}, {far})


def test_what_is_far_is_to_be_signed_while_it_is_far():
    system, days, signed = System(), [due_in(86_400 * day) for day in (1, 2)], []
    system.wire.around = lambda call: (signed.append(call.kwargs.get("signed_before")), straight(call))[1]
    system.cancel(system.schedule(86_400).id)
    write(system, due_in(1800), *days)
    write(system, days[0], have_rows={days[0]})
    latest = NOW + timedelta(days=1) - FAR + SIGNED_WITHIN
    # The last two read the fence: of the job that is near, and of the one whose row another request has put.
    assert signed == [latest, latest, latest, None, None]


@pytest.mark.parametrize("call", ["table.add", "table.write"])
def test_far_job_that_is_signed_too_late_is_undone(call):
    system, jobs = System(), [due_in(86_400) for _ in range(2)]

    system.wire.around = on(call, failing(Unavailable("not sent: it was signed too late")))
    add = call == "table.add"
    result = system.a_route().write_first(jobs[0], until=math.inf) if add else write(system, *jobs)
    assert (result.undone, result.written, result.far) == ({*jobs[: 1 if add else 2]}, set(), set())


@pytest.mark.parametrize("count", [1, 12])
def test_job_without_a_row_is_never_sent(count):
    """A clock that is ahead while the row would be written, and then right: a cancel would promise that it is not."""
    system, jobs = System(), [due_in(60 + n) for n in range(count)]
    ahead = VirtualClock(jobs[-1].expires)
    writer = TableWriter(table=system.table, dispatcher=system.dispatcher, clock=ahead)
    write = partial(writer.write_first, jobs[0]) if count == 1 else partial(writer.write, jobs)
    result = write(until=math.inf)
    assert (system.arrived(), len(result.parked)) == ([], count)


def test_far_is_beyond_what_signatures_and_fences_allow():
    a_minute = timedelta(minutes=1)
    assert 2 * partitions.SIGNATURE_LIVES + partitions.MOST_LOOKAHEAD + a_minute <= FAR - SIGNED_WITHIN


@pytest.mark.parametrize("seconds", [0, -1, 901])
def test_lookahead_with_which_nothing_is_far_is_refused(seconds):
    with pytest.raises(ValueError, match=f"lookahead is {seconds}: it must be from 1 to 900 seconds"):
        checked_lookahead(seconds)
    assert checked_lookahead(900) == timedelta(minutes=15)
