"""Of a schedule whose overlap is skip, one run at a time is under way, whatever becomes of workers and claims.

Histories are played by chance: workers crash, stand still for longer than their claims, fail and succeed. What happens
while a handler runs is played within it.
"""

import random

import pytest

from dueline.testing import MemoryLocks, VirtualClock
from dueline.worker.delivery import DeadLettered, RetryLater, Succeeded
from dueline.worker.execution import OverlapLock
from tests.builders import NOW, a_job
from tests.work import Events, a_connection, a_received_message

HIDDEN = 30
DONE, DEAD = Succeeded(), DeadLettered(error="Discard", reason="no")
AGAIN, AGAIN_LATER = (RetryLater(seconds=seconds, error="Retry", reason="later") for seconds in (1, 100))


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
        self.clock.sleep(self.random.choice([1, 5, 20, HIDDEN + 6]))

    def _renew(self, _):
        for claim, overlap, _ in self.running:
            if claim.is_live(self.clock.monotonic()):
                claim.visible = self.clock.monotonic() + HIDDEN
                overlap.renew()
        for claim, _, job in self.running:
            self.visible[job] = max(self.visible[job], claim.visible)

    def _deliver(self, depth):
        now = self.clock.monotonic()
        there = [job for job, visible in self.visible.items() if visible <= now]
        if not there or depth > 4:
            return
        job = self.random.choice(there)
        received = a_received_message(job, visible=now + HIDDEN, received=now)
        self.visible[job] = now + HIDDEN
        overlap = OverlapLock(a_connection(clock=self.clock), report=Events())
        overlap._context.locks = self.locks
        try:
            verdict = overlap.run(received, lambda _: self._handle(job, received.claim, overlap, depth))
        except Crash:
            return
        if received.claim.is_live(self.clock.monotonic()):
            self._settle(job, verdict)

    def _settle(self, job, verdict):
        self.waiting.pop(job, None)
        if isinstance(verdict, RetryLater):
            self.visible[job] = self.clock.monotonic() + verdict.seconds
            self.waiting[job] = self.visible[job] + HIDDEN
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
        return self.random.choice([DONE, DEAD, AGAIN, AGAIN_LATER])


@pytest.mark.parametrize("block", range(4))
def test_one_run_at_a_time_is_under_way(block):
    histories = [History(seed) for seed in range(block * 50, block * 50 + 50)]
    for history in histories:
        for _ in range(6):
            history.play()
    assert sum(history.started for history in histories) > 100
    assert sum(history.skipped for history in histories) > 20
