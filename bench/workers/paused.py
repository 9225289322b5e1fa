"""A pause of a queue under work, and its end."""

import time

from bench.workers.rated import QUEUE, lines
from dueline import NewJob
from tests.e2e.inbox import wait_until
from tests.e2e.workers.stage import Stage

_JOBS = 400
_QUIET_SECONDS = 8


def pause(stage: Stage) -> tuple[float, float]:
    """Pause a queue under work, and resume it; return after how many seconds each took hold."""
    before = len(lines(stage))
    stage.client.set_rate(QUEUE, "20/s")
    stage.client.schedule_many(QUEUE, [NewJob(payload=number) for number in range(_JOBS)])
    stage.hire(QUEUE)
    wait_until(lambda: len(lines(stage)) > before + 10)
    paused = time.time()
    stage.client.pause(QUEUE)
    time.sleep(_QUIET_SECONDS)
    last = max(line["at"] for line in lines(stage))
    resumed = time.time()
    stage.client.resume(QUEUE)
    wait_until(lambda: max(line["at"] for line in lines(stage)) > resumed)
    first = min(line["at"] for line in lines(stage) if line["at"] > resumed)
    stage.dismiss()
    return max(0.0, last - paused), first - resumed
