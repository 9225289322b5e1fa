"""The worker of the precise queue: `dueline worker bench.lateness.worker:worker`."""

from typing import Any

from bench.lateness.plan import EXACT
from bench.lateness.record import land
from dueline import ReceivedJob, Worker

CONCURRENCY = 64

worker = Worker("lateness")


@worker.job(EXACT, concurrency=CONCURRENCY)
def exact(job: ReceivedJob) -> None:
    number: Any = job.payload
    land(number)
