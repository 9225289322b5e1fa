"""What a look-up shows, and what workers note of a job."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import rows
from dueline.core.job import JobId, Route, State
from dueline.core.status import OF_WORKERS, Outcome, Status, note_outcome, outcome_row, read_outcome, statuses_of
from dueline.errors import InvalidJob, JobNotFound, Throttled, Unavailable
from tests.builders import NOW, RETENTION, a_queue, an_id, due_in
from tests.system import System
from tests.wire import done_in_part, failing, on

AN_HOUR = 3600
OF_NO_WORKER = [state for state in State if state not in OF_WORKERS]


def test_look_up_without_a_record_is_unrecorded(system):
    """Whether it was sent, waits in the inbound queue, or was never scheduled: a look-up does not guess."""
    assert system.look_up(system.schedule(5).id) is State.UNRECORDED
    assert system.look_up(an_id(due=NOW + timedelta(seconds=5), route=Route.DIRECT)) is State.UNRECORDED
    system.breakers["emails"].trip()
    assert system.look_up(system.schedule(AN_HOUR).id) is State.UNRECORDED
    system.tick()
    assert system.look_up(due_in(100).id) is State.UNRECORDED


@pytest.mark.parametrize(
    ("due", "route", "why"),
    [
        (timedelta(days=0.05), Route.DIRECT, "none can be due so late"),
        (timedelta(days=3700), Route.TABLE, "none can be due so late"),
        *((-RETENTION, route, "past its retention") for route in Route),
    ],
)
def test_look_up_of_an_impossible_id_is_not_found(due, route, why):
    with pytest.raises(JobNotFound, match=why):
        System().look_up(an_id(due=NOW + due, route=route))


def test_status_of_an_old_id_is_that_of_the_job(system):
    system.put(job := replace(due_in(700), key="k"))
    second = system.reschedule(job.id, delay=2 * AN_HOUR)
    last = system.reschedule(second, delay=3 * AN_HOUR)
    for id in (job.id, second):
        present, status = system.job_status(id)
        assert (present, status.state, status.moved_from) == (last, State.SCHEDULED, id)
        assert (status.job.id, status.job.payload, status.job.key) == (last, job.payload, "k")
    assert system.status_of(last).moved_from is None
    system.cancel(last)
    assert system.job_status(job.id) == (last, Status(state=State.CANCELLED, moved_from=job.id, key="k"))
    assert system.status_of(replace(job.id, route=Route.DIRECT)) == Status(state=State.UNRECORDED)


def test_unread_move_fails_alone():
    system, jobs = System(), [due_in(700), due_in(700)]
    system.put(*jobs)
    moved = system.reschedule(jobs[0].id, delay=2 * AN_HOUR)
    system.wire.around = on("table.read", failing(Throttled("slow down")), skip=1, times=1)
    ids = [each.id for each in jobs]
    lost, kept = statuses_of(ids, queue=a_queue(), table=system.table, clock=system.clock, until=1).values()
    assert (type(lost), lost.job_id) == (Throttled, str(jobs[0].id))
    assert (kept[0], kept[1].state) == (jobs[1].id, State.SCHEDULED)
    assert system.job_status(jobs[0].id)[0] == moved


def test_status_follows_32_moves_and_no_more():
    system, ids = System(), [an_id(due=NOW + timedelta(hours=n)) for n in range(1, 35)]
    for old, new in itertools.pairwise(ids):
        system.table.write([rows.cancellation_row(old, at=NOW, moved_to=new)])
    assert system.job_status(ids[1]) == (ids[33], Status(state=State.UNRECORDED, moved_from=ids[1]))
    with pytest.raises(Unavailable, match="was moved over 32 times"):
        system.job_status(ids[0])


def test_status_shows_the_schedule_of_a_run():
    system = System(a_queue(track=True))
    system.put(job := due_in(AN_HOUR, schedule="digest", scheduled_for=NOW))
    status = system.status_of(job.id)
    assert (status.schedule, status.scheduled_for) == ("digest", NOW)
    system.table.write([{**rows.job_row(job), "schedule": "no such text"}])
    assert system.status_of(job.id) == Status(state=State.SCHEDULED), "it cannot be read"


def test_late_cancel_hides_no_parking(system):
    system.put(job := due_in(60))
    system.queues["emails"].gone = True
    system.tick()
    assert system.look_up(job.id) is State.PARKED
    system.cancel(job.id)
    assert system.look_up(job.id) is State.PARKED


@pytest.mark.parametrize("react", [done_in_part, failing(Unavailable("no"))])
def test_look_up_answered_in_part_shows_nothing(system, react):
    system.wire.around = on("table.read", react)
    with pytest.raises(Unavailable):
        system.look_up(an_id())


# Of queues that track


def tracking(**settings):
    return System(a_queue(track=True, **settings))


def an_outcome(state=State.RUNNING, **overrides):
    ended = None if state is State.RUNNING else NOW + timedelta(seconds=2)
    fields = {"state": state, "attempts": 3, "started": NOW, "ended": ended, "error": "no", "kind": "welcome"}
    return Outcome(**(fields | overrides))


def note(system, job, outcome, *, expires=None):
    return note_outcome(job.id, outcome, expires=expires or job.expires, table=system.table)


@pytest.mark.parametrize("route", Route)
@pytest.mark.parametrize("state", OF_WORKERS)
def test_outcome_of_a_job_is_shown(route, state):
    system, job = tracking(), due_in(60, route=route)
    assert note(system, job, an_outcome(state))
    assert system.status_of(job.id) == Status(state=state, outcome=an_outcome(state))


def test_final_outcome_is_shown_first():
    system, job = tracking(), due_in(60, key="order-7")
    system.put(job)
    system.tick()
    parked = rows.parked_row(rows.job_key(job.id), reason="no", at=NOW)
    system.table.write([rows.handled_row(job, dispatched=True), parked])
    assert system.look_up(job.id) is State.DISPATCHED
    note(system, job, an_outcome(State.SUCCEEDED))
    status = system.status_of(job.id)
    assert (status.state, status.key, status.job) == (State.SUCCEEDED, "order-7", None)


@pytest.mark.parametrize(("due", "state"), [(60, State.RUNNING), (AN_HOUR, State.CANCELLED)])
def test_promised_cancel_alone_hides_an_outcome(due, state):
    system, job = tracking(), due_in(due)
    system.put(job)
    system.tick()
    note(system, job, an_outcome())
    system.cancel(job.id)
    assert system.look_up(job.id) is state


@pytest.mark.parametrize(("seconds", "is_shown"), [(-1, True), (0, False), (1, False)])
def test_outcome_is_shown_up_to_its_ttl(seconds, is_shown):
    system, job = tracking(), due_in(60)
    note(system, job, an_outcome(State.FAILED), expires=NOW + timedelta(seconds=100))
    system.clock.sleep(100 + seconds)
    assert system.look_up(job.id) is (State.FAILED if is_shown else State.UNRECORDED)


@pytest.mark.parametrize(("track", "broken"), [(False, {}), (True, {"state": "asleep"}), (True, {"ttl": "never"})])
def test_outcome_that_cannot_be_read_is_as_none(track, broken):
    system, job = System(a_queue(track=track)), due_in(60)
    system.table.write([{**outcome_row(job.id, an_outcome(), expires=job.expires), **broken}])
    assert system.status_of(job.id) == Status(state=State.UNRECORDED)


# Outcomes, as values and as rows


def test_outcome_keys_sort_by_due_time():
    id = JobId.parse("emails.7.d.1795244700123.00000000-0000-4000-8000-000000000001")
    key = ("emails#outcome#7", "2026-11-21T07:05:00.123Z#00000000-0000-4000-8000-000000000001")
    assert rows.outcome_key(id) == key
    assert rows.key(outcome_row(id, an_outcome(State.FAILED), expires=NOW)) == key


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        *(({"state": state}, f"an outcome is {state}: it must be one of") for state in OF_NO_WORKER),
        ({"attempts": 0}, "attempts is 0: it must be 1 or more"),
        ({"ended": None}, "ended is None of an outcome that is failed"),
        ({"state": State.RUNNING, "ended": NOW}, "of an outcome that is running"),
        ({"started": NOW.replace(tzinfo=None)}, "each must have a time zone"),
        ({"ended": NOW.replace(tzinfo=None)}, "each must have a time zone"),
    ],
)
def test_invalid_outcome_says_why(wrong, reason):
    with pytest.raises(InvalidJob, match=reason):
        an_outcome(**({"state": State.FAILED} | wrong))


@pytest.mark.parametrize(
    ("error", "kept"),
    [("x" * 201, "x" * 200), ("ü" * 200, "\\xfc" * 50), ("no\nline\x7f\0", "no\\nline\\x7f\\x00")],
)
def test_error_has_200_printable_characters(error, kept):
    outcome = an_outcome(State.FAILED, error=error)
    assert outcome.error == kept
    assert an_outcome(State.FAILED, error=outcome.error) == outcome
    assert read_outcome(outcome_row(an_id(), outcome, expires=NOW)) == outcome


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("state", value) for value in ("scheduled", 5)),
        *(("attempts", value) for value in ("many", [])),
        *(("started", value) for value in ("2026-11-21T07:05:00", "0001-01-01T00:00:00+23:59")),
        ("ended", None),
        ("ttl", "soon"),
    ],
)
def test_row_that_cannot_be_read_says_why(field, value):
    row = outcome_row(an_id(), an_outcome(State.FAILED), expires=NOW)
    with pytest.raises(InvalidJob, match=r"row \('emails#outcome#0', .* cannot be read"):
        read_outcome({**row, field: value})
