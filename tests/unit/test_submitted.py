"""What a caller gets of the jobs that it submits, repeats among them."""

import pytest

from dueline.core.job import Route, State
from dueline.core.request import Request
from dueline.core.status import Outcome, Status, note_outcome
from dueline.errors import Throttled, Unavailable
from tests.builders import NOW, RETENTION, a_queue
from tests.system import System
from tests.wire import failing, meanwhile, on

AN_HOUR = 3600
SCHEDULED = Status(state=State.SCHEDULED)


def keyed(count, *, delay=AN_HOUR):
    return [Request(payload=number, delay=delay, key=f"order {number}") for number in range(count)]


def repeats_of(system, *requests):
    system.submit(*requests)
    repeats = system.submit_each(*requests)
    assert all(each.is_repeat for each in repeats)
    return repeats


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no"))])
def test_repeat_that_cannot_be_looked_up_fails_alone(react):
    system = System()
    (repeat,) = repeats_of(system, *keyed(1))
    fresh, last = system.submit_each(*[Request(payload=each, delay=AN_HOUR) for each in range(2)])
    system.wire.around = on("table.read", react)
    status, error, also = system.submitted_statuses([fresh, repeat, last])
    assert [status, also] == [(each.job.id, SCHEDULED) for each in (fresh, last)]
    assert (isinstance(error, (Throttled, Unavailable)), error.job_id) == (True, str(repeat.job.id))


def test_new_jobs_are_not_looked_up():
    system = System()
    soon, later = system.submit_each(Request(payload=1), Request(payload=2, delay=AN_HOUR))
    system.wire.around = on("table.read", failing(AssertionError("read")))
    statuses = system.submitted_statuses([soon, later])
    assert statuses == [(soon.job.id, Status(state=State.DISPATCHED)), (later.job.id, SCHEDULED)]


@pytest.mark.parametrize("track", [True, False])
def test_500_repeats_are_looked_up_in_32_requests(track):
    system = System(a_queue(track=track, partitions=400))
    repeats = repeats_of(system, *keyed(500))
    calls = []
    system.wire.around = on("table.read", lambda call: (calls.append(call), call.do(*call.args))[1])
    assert system.submitted_statuses(repeats) == [(each.job.id, SCHEDULED) for each in repeats]
    assert len(calls) == 32


def test_no_look_up_begins_when_time_is_over():
    system = System()
    repeats = repeats_of(system, *keyed(20))
    system.wire.around = on("table.read", meanwhile(lambda: system.clock.sleep(1)))
    statuses = system.submitted_statuses(repeats, until=system.clock.monotonic() + 1)
    assert statuses[:16] == [(each.job.id, SCHEDULED) for each in repeats[:16]]
    assert ["out of time" in str(error) for error in statuses[16:]] == [True] * 4
    assert [error.job_id for error in statuses[16:]] == [str(each.job.id) for each in repeats[16:]]


def test_repeat_has_the_outcome_of_its_job():
    system = System(a_queue(track=True))
    (first,) = system.submit(*keyed(1, delay=5))
    outcome = Outcome(state=State.SUCCEEDED, attempts=1, started=NOW, ended=NOW)
    note_outcome(first.id, outcome, expires=first.expires, table=system.table)
    repeats = system.submit_each(*keyed(1, delay=5))
    assert system.submitted_statuses(repeats) == [(first.id, Status(state=State.SUCCEEDED, outcome=outcome))]


@pytest.mark.parametrize(("delay", "state"), [(5, State.DISPATCHED), (AN_HOUR, State.ACCEPTED)])
def test_state_of_a_repeat_without_rows_is_by_its_route(delay, state):
    """Its partition may be newer than what a client knows of the queue, or the retention lower than it was."""
    system = System(a_queue(partitions=50))
    system.breakers["emails"].trip()
    first = system.submit(*keyed(5, delay=delay))
    system.settings["emails"] = a_queue(partitions=1, retention=RETENTION / 1000)
    repeats = system.submit_each(*keyed(5, delay=delay))
    system.clock.sleep(AN_HOUR + RETENTION.total_seconds() / 1000)
    assert any(each.job.id.partition.number for each in repeats)
    assert system.submitted_statuses(repeats) == [(each.id, Status(state=state)) for each in first]
    assert {each.id.route for each in first} == {Route.DIRECT if delay == 5 else Route.TABLE}
