"""CPU a job of both, in one process, in turns: `python -m bench.redis.process FOLDER SECONDS URL`."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

from bench.apart import tell_result
from bench.cost.payloads import USUAL, json_of
from bench.cpu import material, steps
from bench.cpu.loopback import answering
from bench.cpu.process import keep_to, rounds
from bench.cpu.steps import Step
from bench.redis.protocol import CALL_JOBS, Delayed, now_ms

OURS, REDIS = "Dueline", "Redis"
PRODUCER, BETWEEN, WORKER = "producer", "between", "worker"
_JOBS, _TICKED = 500, 1000


def redis_steps(queue: Delayed) -> dict[str, Step]:
    """Return a producer's step, a worker's, and the server's: what it computed since it was asked last."""
    payloads = [json_of(USUAL.payload(number)) for number in range(_JOBS)]
    seen = queue.cpu_seconds()

    def schedule() -> None:
        now = now_ms()
        jobs = [(number, now, payload) for number, payload in enumerate(payloads)]
        for first in range(0, _JOBS, CALL_JOBS):
            queue.schedule(jobs[first : first + CALL_JOBS])

    def work() -> None:
        if sum(1 for _ in queue.drain(now=now_ms())) != _JOBS:
            raise RuntimeError("not all jobs that were scheduled came")

    def served() -> tuple[int, float]:
        nonlocal seen
        before, seen = seen, queue.cpu_seconds()
        return _JOBS, seen - before

    return {PRODUCER: steps.timed(schedule, jobs=_JOBS), WORKER: steps.timed(work, jobs=_JOBS), BETWEEN: served}


def main(folder: Path, seconds: float, url: str) -> None:
    of_table = material.jobs(_TICKED, due=datetime.now(UTC))
    stock = material.stock(of_table, queue_urls=steps.QUEUE_URLS)
    with (folder / "log").open("w") as log, answering(stock, folder=folder) as loopback, redirect_stdout(log):
        steps.as_deployed(loopback)
        ours: dict[str, Callable[[], tuple[int, float]]] = {
            PRODUCER: steps.submit(_JOBS),
            WORKER: steps.Working(_JOBS),
            BETWEEN: steps.tick(_TICKED),
        }
        theirs = redis_steps(Delayed(url))
        keep_to({min(os.sched_getaffinity(0))})
        all = {name: {OURS: ours[name], REDIS: theirs[name]} for name in ours}
        taken = rounds(all, until=time.monotonic() + seconds)
    tell_result(taken)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
