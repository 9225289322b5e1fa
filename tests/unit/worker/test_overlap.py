"""Of a schedule whose overlap is skip, one job runs at a time."""

from contextlib import nullcontext

import pytest

from dueline.errors import Unavailable
from dueline.lookup.outcome import read_outcome
from dueline.memory import VirtualClock
from dueline.model import rows
from dueline.model.job import State
from dueline.worker.handler_runner import Handler, HandlerRunner
from dueline.worker.overlap import Overlap
from dueline.worker.verdict import Again, Dead, Done, Held, Skipped
from dueline.worker.watch.event import Kind
from dueline.worker.watch.metrics import Metrics
from tests.builders import NOW, a_job, a_queue
from tests.work import Events, a_connection, a_received_message, wait_until

HIDDEN = 30.0


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def clock():
    return VirtualClock(NOW)


@pytest.fixture
def connection(clock):
    return a_connection(clock=clock, queue=a_queue(track=True))


@pytest.fixture
def overlap(connection, events):
    return Overlap(connection, report=events)


def an_occurrence(clock, *, job=None, hidden=HIDDEN, exclusive=True, schedule="digest"):
    made = job or a_job(schedule=schedule, nominal=NOW, exclusive=exclusive)
    return a_received_message(made, visible=clock.monotonic() + hidden, received=clock.monotonic())


def until(connection):
    _, end = connection.locks.held["digest"]
    return (end - connection.clock.now()).total_seconds()


def then(verdict):
    return lambda _: verdict


AGAIN = Again(seconds=600, error="Retry", reason="later")


def test_a_job_is_skipped_while_another_of_its_schedule_runs_and_those_of_others_are_not(overlap, clock):
    met = []

    def handle(_):
        met.append(overlap.run(an_occurrence(clock), then(Done())))
        met.append(overlap.run(an_occurrence(clock, schedule="report"), then(Done())))
        met.append(overlap.run(an_occurrence(clock, exclusive=False), then(Done())))
        return Done()

    assert overlap.run(an_occurrence(clock), handle) == Done()
    assert met == [Skipped(), Done(), Done()]


@pytest.mark.parametrize("end", [Done(), Dead(error="Discard", reason="no")])
def test_the_next_one_runs_when_the_last_one_is_done_or_dead(overlap, clock, end):
    assert overlap.run(an_occurrence(clock), then(end)) == end
    assert overlap.run(an_occurrence(clock), then(Done())) == Done()


def test_a_job_that_waits_for_its_retry_keeps_the_others_out_and_gets_in_itself(overlap, clock, connection):
    failed = a_job(schedule="digest", nominal=NOW, exclusive=True)
    assert overlap.run(an_occurrence(clock, job=failed), then(AGAIN)) == AGAIN
    clock.sleep(AGAIN.seconds)
    assert overlap.run(an_occurrence(clock), then(Done())) == Skipped()
    assert overlap.run(an_occurrence(clock, job=failed), then(Done())) == Done()
    assert overlap.run(an_occurrence(clock), then(Done())) == Done()


def test_a_crash_lets_the_next_one_run_once_the_claim_is_over(overlap, clock):
    def crash(_):
        raise SystemExit

    with pytest.raises(SystemExit):
        overlap.run(an_occurrence(clock), crash)
    clock.sleep(HIDDEN)
    assert overlap.run(an_occurrence(clock), then(Done())) == Skipped()
    clock.sleep(10)
    assert overlap.run(an_occurrence(clock), then(Done())) == Done()


def test_a_lock_is_renewed_with_the_claim_and_outlives_it(overlap, clock, connection):
    received = an_occurrence(clock)

    def handle(_):
        assert until(connection) > HIDDEN
        clock.sleep(20)
        received.claim.visible = clock.monotonic() + HIDDEN
        overlap.renew()
        assert until(connection) > HIDDEN
        return Done()

    assert overlap.run(received, handle) == Done()


def test_a_lock_is_renewed_without_being_asked_to(overlap, clock, connection):
    received = an_occurrence(clock)

    def handle(_):
        received.claim.visible += 1000
        assert wait_until(lambda: until(connection) > 1000)
        return Done()

    assert overlap.run(received, handle) == Done()
    assert connection.locks.held == {}


def test_who_has_lost_the_claim_frees_no_lock_which_the_next_attempt_may_have(overlap, clock, connection):
    received = an_occurrence(clock)

    def lose(_):
        received.claim.lost = True
        return Done()

    overlap.run(received, lose)
    assert connection.locks.held["digest"][0] == received.id


def test_a_lambda_functions_lock_lasts_for_as_long_as_its_message_is_hidden(overlap, clock, connection):
    def handle(_):
        assert until(connection) > connection.settings.visibility_timeout
        return Done()

    assert overlap.run(an_occurrence(clock, hidden=float("inf")), handle) == Done()


def test_a_job_whose_lock_cannot_be_taken_is_held_and_does_not_run(overlap, clock, connection, events):
    connection.locks = Away()
    verdict = overlap.run(an_occurrence(clock), then(Done()))
    assert isinstance(verdict, Held)
    assert [event.reason for event in events.of(Kind.TROUBLE)] == [verdict.reason]


def test_a_lock_that_is_not_freed_is_told_and_the_job_is_done(overlap, clock, connection, events):
    def handle(_):
        connection.locks = Away()
        return Done()

    assert overlap.run(an_occurrence(clock), handle) == Done()
    assert "expires" in events.of(Kind.TROUBLE)[0].reason


class Away:
    """Locks while AWS is away."""

    def take(self, *_args, **_fields):
        raise Unavailable("away")

    renew = free = take


def test_a_skipped_job_is_told_in_its_outcome_in_the_log_and_in_the_metrics(connection, clock, events):

    def run_another(job):
        ran.append(job)
        assert runner.run(other) == Skipped()

    ran, other = [], an_occurrence(clock)
    runner = HandlerRunner(
        Handler(queue="emails", call=run_another),
        connection,
        report=events,
        trace=lambda *_args, **_fields: nullcontext(),
        jitter=lambda: 0.0,
    )
    assert runner.run(an_occurrence(clock)) == Done()
    assert len(ran) == 1
    (row,) = connection.table.read([rows.outcome_key(other.job_id)]).rows.values()
    assert (read_outcome(row).state, read_outcome(row).attempts) == (State.SKIPPED, 1)
    (told,) = events.of(Kind.OVERLAPPED)
    assert (told.job, told.queue) == (other.id, "emails")
    counted = Metrics()
    counted(told)
    assert counted.registry.get_sample_value("dueline_overlapped_total", {"queue": "emails"}) == 1
