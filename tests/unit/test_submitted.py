"""What a call that submits jobs is told of them, repeats among them."""

import pytest

from dueline.errors import InvalidJob, Throttled, Unavailable
from dueline.lookup.outcome import Outcome, note_outcome
from dueline.lookup.status import Status
from dueline.model.job import Route, State
from dueline.model.request import Request
from dueline.protocol.keys import Repeat
from tests.builders import NOW, RETENTION, a_queue
from tests.system import System
from tests.wire import done_in_part, failing, meanwhile, on

AN_HOUR = 3600


def keyed(count, *, delay=AN_HOUR):
    return [Request(payload=number, delay=delay, key=f"order {number}") for number in range(count)]


def unkeyed(count):
    return [Request(payload=number, delay=AN_HOUR) for number in range(count)]


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no"))])
def test_a_repeat_that_could_not_be_looked_up_fails_alone_and_names_its_job(react):
    system = System()
    (first,) = system.submit(*keyed(1))
    fresh, repeat, last = system.submit(*unkeyed(1), *keyed(1), *unkeyed(1))
    system.wire.around = on("table.read", react)
    told, error, also = system.submitted_statuses([fresh, repeat, last])
    assert [told, also] == [(job.id, Status(state=State.SCHEDULED)) for job in (fresh, last)]
    assert (isinstance(error, (Throttled, Unavailable)), error.job_id) == (True, str(first.id))


def test_a_repeat_of_which_a_row_was_left_unread_fails_alone():
    system = System()
    system.submit(*keyed(2))
    repeats = system.submit(*keyed(2))
    system.wire.around = on("table.read", done_in_part)
    unread, read = system.submitted_statuses(repeats)
    assert (type(unread), unread.job_id) == (Unavailable, str(repeats[0].id))
    assert read == (repeats[1].id, Status(state=State.SCHEDULED))


def test_an_error_of_a_submission_is_told_as_it_is():
    error = InvalidJob("no")
    assert System().submitted_statuses([error]) == [error]


def test_jobs_that_are_no_repeats_are_told_without_a_request():
    system = System()
    soon, later = system.submit(Request(payload=1), *unkeyed(1))
    system.wire.around = on("table.read", failing(AssertionError("asked")))
    told = system.submitted_statuses([soon, later])
    assert told == [(soon.id, Status(state=State.DISPATCHED)), (later.id, Status(state=State.SCHEDULED))]


@pytest.mark.parametrize("track", [True, False])
def test_500_repeats_are_looked_up_in_32_requests(track):
    system = System(a_queue(track=track, partitions=400))
    system.submit(*keyed(500))
    repeats = system.submit(*keyed(500))
    asked = []
    system.wire.around = on("table.read", lambda call: (asked.append(call), call.do(*call.args))[1])
    assert all(isinstance(each, Repeat) for each in repeats)
    assert system.submitted_statuses(repeats) == [(each.id, Status(state=State.SCHEDULED)) for each in repeats]
    assert len(asked) == 32


def test_one_key_that_stands_twice_in_a_call_is_looked_up_once():
    system = System()
    system.submit(*keyed(1))
    repeats = system.submit(*keyed(1), *keyed(1))
    first, second = system.submitted_statuses(repeats)
    assert first == second == (repeats[0].id, Status(state=State.SCHEDULED))


def test_no_look_up_begins_when_time_is_over_and_what_was_read_is_told():
    system = System()
    system.submit(*keyed(20))
    repeats = system.submit(*keyed(20))
    system.wire.around = on("table.read", meanwhile(lambda: system.clock.sleep(1)))
    told = system.submitted_statuses(repeats, until=system.clock.monotonic() + 1)
    assert told[:16] == [(each.id, Status(state=State.SCHEDULED)) for each in repeats[:16]]
    assert ["out of time" in str(error) for error in told[16:]] == [True] * 4
    assert [error.job_id for error in told[16:]] == [str(each.id) for each in repeats[16:]]


def test_a_repeat_is_told_with_what_became_of_it():
    system = System(a_queue(track=True))
    (first,) = system.submit(*keyed(1, delay=5))
    outcome = Outcome(state=State.SUCCEEDED, attempts=1, started=NOW, ended=NOW)
    note_outcome(first.id, outcome, expires=first.expires, table=system.table)
    repeats = system.submit(*keyed(1, delay=5))
    assert system.submitted_statuses(repeats) == [(first.id, Status(state=State.SUCCEEDED, outcome=outcome))]


@pytest.mark.parametrize(("delay", "state"), [(5, State.DISPATCHED), (AN_HOUR, State.ACCEPTED)])
def test_a_repeat_of_which_nothing_else_is_known_is_told_as_its_key_vouches_for(delay, state):
    """Its partition may be newer than what a client knows of the queue, or the retention lower than it was."""
    system = System(a_queue(partitions=50))
    system.breakers["emails"].trip()
    first = system.submit(*keyed(5, delay=delay))
    system.settings["emails"] = a_queue(partitions=1, retention=RETENTION / 1000)
    repeats = system.submit(*keyed(5, delay=delay))
    system.clock.sleep(AN_HOUR + RETENTION.total_seconds() / 1000)
    assert any(each.id.partition.number for each in repeats)
    assert system.submitted_statuses(repeats) == [(each.id, Status(state=state)) for each in first]
    assert {each.id.route for each in first} == {Route.DIRECT if delay == 5 else Route.TABLE}
