"""Of a schedule whose overlap is skip, one job runs at a time."""

from contextlib import nullcontext

import pytest

from dueline.core import rows
from dueline.core.job import State
from dueline.core.status import read_outcome
from dueline.errors import Unavailable
from dueline.testing import VirtualClock
from dueline.worker.delivery import Deferred, RetryLater, Skipped, Succeeded
from dueline.worker.events import EventKind
from dueline.worker.execution import Handler, HandlerRunner, OverlapLock
from dueline.worker.prometheus import Metrics
from tests.builders import NOW, a_job, a_queue
from tests.work import Events, a_connection, a_received_message

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
    return OverlapLock(connection, report=events)


def an_occurrence(clock, *, job=None, hidden=HIDDEN, exclusive=True, schedule="digest"):
    made = job or a_job(schedule=schedule, scheduled_for=NOW, exclusive=exclusive)
    return a_received_message(made, visible=clock.monotonic() + hidden, received=clock.monotonic())


def until(connection):
    _, end = connection.locks.held["digest"]
    return (end - connection.clock.now()).total_seconds()


def then(verdict):
    return lambda _: verdict


AGAIN = RetryLater(seconds=600, error="Retry", reason="later")


def test_overlapping_run_is_skipped_and_no_other_job(overlap, clock):
    matches = []

    def handle(_):
        matches.append(overlap.run(an_occurrence(clock), then(Succeeded())))
        matches.append(overlap.run(an_occurrence(clock, schedule="report"), then(Succeeded())))
        matches.append(overlap.run(an_occurrence(clock, exclusive=False), then(Succeeded())))
        return Succeeded()

    assert overlap.run(an_occurrence(clock), handle) == Succeeded()
    assert matches == [Skipped(), Succeeded(), Succeeded()]


def test_job_that_waits_for_its_retry_keeps_its_lock(overlap, clock, connection):
    failed = a_job(schedule="digest", scheduled_for=NOW, exclusive=True)
    assert overlap.run(an_occurrence(clock, job=failed), then(AGAIN)) == AGAIN
    clock.sleep(AGAIN.seconds)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Skipped()
    assert overlap.run(an_occurrence(clock, job=failed), then(Succeeded())) == Succeeded()
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Succeeded()


def test_a_crash_lets_the_next_one_run_once_the_claim_is_over(overlap, clock):
    def crash(_):
        raise SystemExit

    with pytest.raises(SystemExit):
        overlap.run(an_occurrence(clock), crash)
    clock.sleep(HIDDEN)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Skipped()
    clock.sleep(10)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Succeeded()


def test_a_lock_is_renewed_with_the_claim_and_outlives_it(overlap, clock, connection):
    received = an_occurrence(clock)

    def handle(_):
        assert until(connection) > HIDDEN
        clock.sleep(20)
        received.claim.visible = clock.monotonic() + HIDDEN
        overlap.renew()
        assert until(connection) > HIDDEN
        return Succeeded()

    assert overlap.run(received, handle) == Succeeded()


def test_lost_claim_frees_no_lock(overlap, clock, connection):
    received = an_occurrence(clock)

    def lose(_):
        received.claim.lost = True
        return Succeeded()

    overlap.run(received, lose)
    assert connection.locks.held["digest"][0] == received.id


def test_lock_in_lambda_outlasts_the_visibility_timeout(overlap, clock, connection):
    def handle(_):
        assert until(connection) > connection.settings.visibility_timeout
        return Succeeded()

    assert overlap.run(an_occurrence(clock, hidden=float("inf")), handle) == Succeeded()


def test_job_waits_while_its_lock_cannot_be_acquired(overlap, clock, connection, events):
    connection.locks = Away()
    verdict = overlap.run(an_occurrence(clock), then(Succeeded()))
    assert isinstance(verdict, Deferred)
    assert [event.reason for event in events.of(EventKind.TROUBLE)] == [verdict.reason]


def test_lock_that_is_not_freed_is_reported_and_job_is_done(overlap, clock, connection, events):
    def handle(_):
        connection.locks = Away()
        return Succeeded()

    assert overlap.run(an_occurrence(clock), handle) == Succeeded()
    assert "expires" in events.of(EventKind.TROUBLE)[0].reason


class Away:
    """Locks while AWS is away."""

    def take(self, *_args, **_fields):
        raise Unavailable("away")

    renew = free = take


def test_skipped_job_is_in_outcome_log_and_metrics(connection, clock, events):

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
    assert runner.run(an_occurrence(clock)) == Succeeded()
    assert len(ran) == 1
    (row,) = connection.table.read([rows.outcome_key(other.job_id)]).rows.values()
    assert (read_outcome(row).state, read_outcome(row).attempts) == (State.SKIPPED, 1)
    (answer,) = events.of(EventKind.OVERLAPPED)
    assert (answer.job, answer.queue) == (other.id, "emails")
    counted = Metrics()
    counted(answer)
    assert counted.registry.get_sample_value("dueline_overlapped_total", {"queue": "emails"}) == 1
