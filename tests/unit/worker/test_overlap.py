"""Of a schedule whose overlap is skip, one job runs at a time."""

from types import SimpleNamespace

import pytest

from dueline.core import rows
from dueline.core.job import State
from dueline.core.status import read_outcome
from dueline.errors import Unavailable
from dueline.testing import VirtualClock
from dueline.worker.delivery import DeadLettered, Deferred, EventKind, RetryLater, Skipped, Succeeded
from dueline.worker.execution import HandlerRunner, OverlapLock
from tests.builders import NOW, a_job, a_queue
from tests.wire import failing
from tests.work import a_connection, a_received_message, handlers_of


@pytest.fixture
def clock():
    return VirtualClock(NOW)


@pytest.fixture
def connection(clock):
    return a_connection(clock=clock, queue=a_queue(track=True))


@pytest.fixture
def overlap(connection):
    return OverlapLock(connection)


def an_occurrence(clock, *, job=None, exclusive=True, schedule="digest"):
    made = job or a_job(schedule=schedule, scheduled_for=NOW, exclusive=exclusive)
    return a_received_message(made, visible=clock.monotonic() + 30, received=clock.monotonic())


def then(verdict):
    return lambda _: verdict


def test_overlapping_run_is_skipped(overlap, clock):
    matches = []

    def handle(_):
        matches.append(overlap.run(an_occurrence(clock), then(Succeeded())))
        matches.append(overlap.run(an_occurrence(clock, schedule="report"), then(Succeeded())))
        matches.append(overlap.run(an_occurrence(clock, exclusive=False), then(Succeeded())))
        return Succeeded()

    assert overlap.run(an_occurrence(clock), handle) == Succeeded()
    assert matches == [Skipped(), Succeeded(), Succeeded()]


def test_crashed_run_goes_first_until_its_longest_run(overlap, clock, connection):
    crashed = an_occurrence(clock)
    with pytest.raises(SystemExit):
        overlap.run(crashed, failing(SystemExit()))
    clock.sleep(connection.settings.longest_run + 59)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Skipped()
    assert overlap.run(an_occurrence(clock, job=crashed.job), then(Deferred())) == Deferred()
    clock.sleep(connection.settings.longest_run + 60)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Succeeded()


def test_retried_run_holds_its_lock_for_a_minute_more(overlap, clock):
    later = RetryLater(seconds=300)
    assert overlap.run(an_occurrence(clock), then(later)) == later
    clock.sleep(359)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Skipped()
    clock.sleep(1)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Succeeded()


@pytest.mark.parametrize("verdict", [Succeeded(), DeadLettered()])
def test_ended_run_frees_its_lock(overlap, clock, verdict):
    for _ in range(2):
        assert overlap.run(an_occurrence(clock), then(verdict)) == verdict


def test_lost_claim_frees_no_lock(overlap, clock, connection):
    received = an_occurrence(clock)

    def lose(_):
        received.lost = True
        return Succeeded()

    overlap.run(received, lose)
    assert connection.locks.held["digest"][0] == received.id


def test_job_waits_for_its_lock(overlap, clock, connection):
    away = failing(Unavailable("away"))

    def lose_the_locks(_):
        connection.locks = SimpleNamespace(take=away, free=away)
        return Succeeded()

    assert overlap.run(an_occurrence(clock), lose_the_locks) == Succeeded()
    verdict = overlap.run(an_occurrence(clock), then(Succeeded()))
    unfreed, waiting = (event.reason for event in connection.report.of(EventKind.TROUBLE))
    assert "expires" in unfreed
    assert (type(verdict), verdict.error) == (Deferred, "Unavailable")
    assert waiting == verdict.reason == "its schedule's lock could not be taken: away"


def test_skipped_job_is_reported(connection, clock):
    ran, other = [], an_occurrence(clock)

    def run_another(job):
        ran.append(job)
        assert runner.run(other) == Skipped()

    runner = HandlerRunner(handlers_of(run_another), connection, jitter=lambda: 0.0)
    assert runner.run(an_occurrence(clock)) == Succeeded()
    assert len(ran) == 1
    (row,) = connection.table.read([rows.outcome_key(other.job.id)]).rows.values()
    assert (read_outcome(row).state, read_outcome(row).attempts) == (State.SKIPPED, 1)
    (answer,) = connection.report.of(EventKind.OVERLAPPED)
    assert (answer.job, answer.queue) == (other.id, "emails")
