"""Two processes that work at one queue under one rate."""

from typing import Any

from dueline import NewJob
from tests.e2e.inbox import wait_until
from tests.e2e.workers import book
from tests.e2e.workers.stage import Stage

QUEUE = "limited"
_PROCESSES = 2


def keep_a_rate(stage: Stage, *, rate: int, seconds: float) -> list[float]:
    """Work at so many seconds' jobs; return when each began, in order, in seconds."""
    stage.client.set_rate(QUEUE, f"{rate}/s")
    jobs = round(rate * seconds)
    stage.client.schedule_many(QUEUE, [NewJob(payload=number) for number in range(jobs)])
    for _ in range(_PROCESSES):
        stage.hire(QUEUE)
    wait_until(lambda: len(lines(stage)) >= jobs)
    if len({line["pid"] for line in lines(stage)}) != _PROCESSES:
        raise RuntimeError("one process had all the jobs: there was no rate to share")
    stage.dismiss()
    stage.client.set_rate(QUEUE, None)
    return sorted(line["at"] for line in lines(stage))


def lines(stage: Stage) -> list[dict[str, Any]]:
    """Return what was begun so far."""
    return [line for line in book.read(stage.book) if line["queue"] == QUEUE]
