"""Of a schedule whose overlap is skip, one job runs at a time."""

import random
from contextlib import nullcontext

import pytest

from dueline.core import rows
from dueline.core.job import State
from dueline.core.status import read_outcome
from dueline.errors import Unavailable
from dueline.testing import MemoryLocks, VirtualClock
from dueline.worker.delivery import DeadLettered, Deferred, RetryLater, Skipped, Succeeded
from dueline.worker.events import EventKind
from dueline.worker.execution import HandlerRunner, OverlapLock
from dueline.worker.prometheus import Metrics
from tests.builders import NOW, a_job, a_queue
from tests.work import Events, a_connection, a_received_message, handlers_of

HIDDEN = 30.0


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def clock():
    return VirtualClock(NOW)


@pytest.fixture
def connection(clock, events):
    return a_connection(clock=clock, report=events, queue=a_queue(track=True))


@pytest.fixture
def overlap(connection):
    return OverlapLock(connection)


def an_occurrence(clock, *, job=None, hidden=HIDDEN, exclusive=True, schedule="digest"):
    made = job or a_job(schedule=schedule, scheduled_for=NOW, exclusive=exclusive)
    return a_received_message(made, visible=clock.monotonic() + hidden, received=clock.monotonic())


def until(connection):
    _, end = connection.locks.held["digest"]
    return (end - connection.clock.now()).total_seconds()


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


def test_crash_frees_the_lock_after_the_claim(overlap, clock):
    def crash(_):
        raise SystemExit

    with pytest.raises(SystemExit):
        overlap.run(an_occurrence(clock), crash)
    clock.sleep(HIDDEN)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Skipped()
    clock.sleep(10)
    assert overlap.run(an_occurrence(clock), then(Succeeded())) == Succeeded()


def test_lock_is_renewed_with_the_claim(overlap, clock, connection):
    received = an_occurrence(clock)

    def handle(_):
        assert until(connection) > HIDDEN
        clock.sleep(20)
        received.visible = clock.monotonic() + HIDDEN
        overlap.renew()
        assert until(connection) > HIDDEN
        return Succeeded()

    assert overlap.run(received, handle) == Succeeded()


def test_lost_claim_frees_no_lock(overlap, clock, connection):
    received = an_occurrence(clock)

    def lose(_):
        received.lost = True
        return Succeeded()

    overlap.run(received, lose)
    assert connection.locks.held["digest"][0] == received.id


def test_lock_in_lambda_lasts_long_enough(overlap, clock, connection):
    def handle(_):
        assert until(connection) > connection.settings.visibility_timeout
        return Succeeded()

    assert overlap.run(an_occurrence(clock, hidden=float("inf")), handle) == Succeeded()


def test_job_waits_for_its_lock(overlap, clock, connection, events):
    connection.locks = Away()
    verdict = overlap.run(an_occurrence(clock), then(Succeeded()))
    assert isinstance(verdict, Deferred)
    assert [event.reason for event in events.of(EventKind.TROUBLE)] == [verdict.reason]


def test_unfreed_lock_is_reported(overlap, clock, connection, events):
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


def test_skipped_job_is_reported(connection, clock, events):

    def run_another(job):
        ran.append(job)
        assert runner.run(other) == Skipped()

    ran, other = [], an_occurrence(clock)
    runner = HandlerRunner(
        handlers_of(run_another),
        connection,
        trace=lambda *_args, **_fields: nullcontext(),
        jitter=lambda: 0.0,
    )
    assert runner.run(an_occurrence(clock)) == Succeeded()
    assert len(ran) == 1
    (row,) = connection.table.read([rows.outcome_key(other.job.id)]).rows.values()
    assert (read_outcome(row).state, read_outcome(row).attempts) == (State.SKIPPED, 1)
    (answer,) = events.of(EventKind.OVERLAPPED)
    assert (answer.job, answer.queue) == (other.id, "emails")
    counted = Metrics()
    counted(answer)
    assert counted.registry.get_sample_value("dueline_overlapped_total", {"queue": "emails", "kind": ""}) == 1


# By chance: workers crash, stand still for longer than their claims, fail and succeed


HIDDEN_HISTORY = 30
DONE, DEAD = Succeeded(), DeadLettered(error="Discard", reason="no")
AGAIN_HISTORY, AGAIN_LATER = (RetryLater(seconds=seconds, error="Retry", reason="later") for seconds in (1, 100))


class Crash(BaseException):
    """The process is no more."""


class History:
    """One schedule's jobs, and the workers that receive them, each delivery another process."""

    def __init__(self, seed):
        self.random, self.clock, self.locks = random.Random(seed), VirtualClock(NOW), MemoryLocks()
        self.visible = {a_job(schedule="digest", scheduled_for=NOW, exclusive=True): 0.0 for _ in range(3)}
        self.waiting, self.running, self.started, self.skipped = {}, [], 0, 0

    def play(self, depth=0):
        for _ in range(self.random.randint(2, 6)):
            step = self.random.choice([self._deliver, self._deliver, self._wait, self._renew])
            step(depth)

    def _wait(self, _):
        self.clock.sleep(self.random.choice([1, 5, 20, HIDDEN_HISTORY + 6]))

    def _renew(self, _):
        for claim, overlap, _ in self.running:
            if claim.is_live(self.clock.monotonic()):
                claim.visible = self.clock.monotonic() + HIDDEN_HISTORY
                overlap.renew()
        for claim, _, job in self.running:
            self.visible[job] = max(self.visible[job], claim.visible)

    def _deliver(self, depth):
        now = self.clock.monotonic()
        there = [job for job, visible in self.visible.items() if visible <= now]
        if not there or depth > 4:
            return
        job = self.random.choice(there)
        received = a_received_message(job, visible=now + HIDDEN_HISTORY, received=now)
        self.visible[job] = now + HIDDEN_HISTORY
        overlap = OverlapLock(a_connection(clock=self.clock))
        overlap._context.locks = self.locks
        try:
            verdict = overlap.run(received, lambda _: self._handle(job, received, overlap, depth))
        except Crash:
            return
        if received.is_live(self.clock.monotonic()):
            self._settle(job, verdict)

    def _settle(self, job, verdict):
        self.waiting.pop(job, None)
        if isinstance(verdict, RetryLater):
            self.visible[job] = self.clock.monotonic() + verdict.seconds
            self.waiting[job] = self.visible[job] + HIDDEN_HISTORY
        else:
            self.visible[job] = self.clock.monotonic() if isinstance(verdict, DeadLettered) else float("inf")
            self.skipped += not isinstance(verdict, DeadLettered | Succeeded)

    def _handle(self, job, claim, overlap, depth):
        now = self.clock.monotonic()
        assert [other for held, _, other in self.running if other != job and held.is_live(now)] == []
        assert [other for other, until in self.waiting.items() if other != job and now < until] == []
        self.started += 1
        self.waiting.pop(job, None)
        self.running.append((claim, overlap, job))
        self.play(depth + 1)
        self.running.remove((claim, overlap, job))
        if self.random.randrange(4) == 0:
            # Its thread renews nothing from now on.
            claim.lost = True
            raise Crash
        return self.random.choice([DONE, DEAD, AGAIN_HISTORY, AGAIN_LATER])


@pytest.mark.parametrize("block", range(4))
def test_one_run_at_a_time_is_under_way(block):
    histories = [History(seed) for seed in range(block * 50, block * 50 + 50)]
    for history in histories:
        for _ in range(6):
            history.play()
    assert sum(history.started for history in histories) > 100
    assert sum(history.skipped for history in histories) > 20
