"""A queue under a rate that two processes share, and its pause."""

import time
from typing import Any

from dueline import NewJob
from tests.e2e.inbox import wait_until
from tests.e2e.workers import book
from tests.e2e.workers.stage import Stage

QUEUE = "limited"
_PROCESSES = 2
_JOBS = 400
_QUIET_SECONDS = 8


def keep_a_rate(stage: Stage, *, rate: int, seconds: float) -> list[float]:
    """Work at so many seconds' jobs; return when each began, in order, in seconds."""
    stage.client.set_rate(QUEUE, f"{rate}/s")
    jobs = round(rate * seconds)
    stage.client.schedule_many(QUEUE, [NewJob(payload=number) for number in range(jobs)])
    for _ in range(_PROCESSES):
        stage.hire(QUEUE)
    wait_until(lambda: len(_begun(stage)) >= jobs)
    if len({line["pid"] for line in _begun(stage)}) != _PROCESSES:
        raise RuntimeError("one process had all the jobs: there was no rate to share")
    stage.dismiss()
    stage.client.set_rate(QUEUE, None)
    return sorted(line["at"] for line in _begun(stage))


def pause(stage: Stage) -> tuple[float, float]:
    """Pause a queue under work, and resume it; return after how many seconds each took hold."""
    before = len(_begun(stage))
    stage.client.set_rate(QUEUE, "20/s")
    stage.client.schedule_many(QUEUE, [NewJob(payload=number) for number in range(_JOBS)])
    stage.hire(QUEUE)
    wait_until(lambda: len(_begun(stage)) > before + 10)
    paused = time.time()
    stage.client.pause(QUEUE)
    time.sleep(_QUIET_SECONDS)
    last = max(line["at"] for line in _begun(stage))
    resumed = time.time()
    stage.client.resume(QUEUE)
    wait_until(lambda: max(line["at"] for line in _begun(stage)) > resumed)
    first = min(line["at"] for line in _begun(stage) if line["at"] > resumed)
    stage.dismiss()
    return max(0.0, last - paused), first - resumed


def _begun(stage: Stage) -> list[dict[str, Any]]:
    """Return what was begun so far."""
    return [line for line in book.read(stage.book) if line["queue"] == QUEUE]
