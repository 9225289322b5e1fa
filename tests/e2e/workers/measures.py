"""What is measured of workers: their rate, their lateness, how soon a pause takes hold, their throughput."""

import subprocess
import sys
import time
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline import NewJob
from local.summary import percentile
from local.template import ROOT
from tests.e2e.inbox import wait_until
from tests.e2e.workers import book
from tests.e2e.workers.race import WAYS
from tests.e2e.workers.stage import Stage

WINDOW_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rated:
    """When jobs began under a rate, in order, in seconds."""

    begun: list[float]

    def windows(self) -> tuple[int, int]:
        """Return the fewest and the most jobs that began in any 10 s while there were jobs to begin."""
        last = self.begun[-1] - WINDOW_SECONDS
        counts = [
            bisect_left(self.begun, at + WINDOW_SECONDS) - index for index, at in enumerate(self.begun) if at <= last
        ]
        return min(counts), max(counts)


def keep_a_rate(stage: Stage, *, rate: int, seconds: float) -> Rated:
    """Have two processes work at a queue whose rate is limited, with jobs for so many seconds."""
    stage.client.set_rate("limited", f"{rate}/s")
    jobs = round(rate * seconds)
    stage.client.schedule_many("limited", [NewJob(payload=number) for number in range(jobs)])
    for _ in range(2):
        stage.hire("limited")
    wait_until(lambda: len(_lines(stage, "limited")) >= jobs, seconds=seconds * 2 + 20)
    stage.dismiss()
    stage.client.set_rate("limited", None)
    lines = _lines(stage, "limited")
    assert len({line["pid"] for line in lines}) == 2
    return Rated(begun=sorted(line["at"] for line in lines))


def be_precise(stage: Stage, *, rate: int, seconds: float) -> list[float]:
    """Have a process work at a precise queue with so many jobs a second; return the lateness of each, in seconds."""
    jobs = round(rate * seconds)
    worker = stage.hire("exact")
    first = datetime.now(UTC) + timedelta(seconds=8)
    stage.client.schedule_many(
        "exact", [NewJob(payload=n, at=first + timedelta(seconds=n / rate)) for n in range(jobs)]
    )
    wait_until(lambda: len(_lines(stage, "exact")) >= jobs, seconds=seconds + 30)
    worker.terminate()
    stage.dismiss()
    return sorted(line["late"] for line in _lines(stage, "exact"))


def pause(stage: Stage) -> tuple[float, float]:
    """Pause a queue under work, and resume it; return after how many seconds each took hold."""
    before = len(_lines(stage, "limited"))
    stage.client.set_rate("limited", "20/s")
    stage.client.schedule_many("limited", [NewJob(payload=number) for number in range(400)])
    stage.hire("limited")
    wait_until(lambda: len(_lines(stage, "limited")) > before + 10, seconds=20)
    paused = time.time()
    stage.client.pause("limited")
    time.sleep(8)
    last = max(line["at"] for line in _lines(stage, "limited"))
    resumed = time.time()
    stage.client.resume("limited")
    wait_until(lambda: max(line["at"] for line in _lines(stage, "limited")) > resumed, seconds=20)
    first = min(line["at"] for line in _lines(stage, "limited") if line["at"] > resumed)
    stage.dismiss()
    return last - paused, first - resumed


def lateness_told(lateness: list[float]) -> dict[str, Any]:
    told = {f"p{percent}": round(percentile(lateness, percent), 4) for percent in (50, 95, 99, 100)}
    return {"jobs": len(lateness), "early": sum(each < 0 for each in lateness), **told}


def _lines(stage: Stage, queue: str) -> list[dict[str, Any]]:
    return [line for line in book.read(stage.book) if line["queue"] == queue]


def race(stage: Stage, *, jobs: int) -> dict[str, float]:
    """Return how many jobs a second one process receives and acknowledges, by the way in which it does.

    `worker` is ours with an empty handler; `bare` is a loop that receives and deletes the same messages in batches with
    boto3, one after the other, and does nothing else.
    """
    return {way: _run(stage, way, jobs) for way in WAYS}


def _run(stage: Stage, way: str, jobs: int) -> float:
    command = [sys.executable, "-m", "tests.e2e.workers.race", way, stage.endpoints.queues["race"], str(jobs)]
    done = subprocess.run(command, cwd=ROOT, env=stage.environment(), capture_output=True, text=True, check=True)
    return jobs / float(done.stderr.splitlines()[-1])
