"""The worker of the story: `dueline worker tests.e2e.workers.hands:worker`."""

import asyncio

from dueline import ReceivedJob, Worker
from tests.e2e.workers import book, fates

worker = Worker("shift", concurrency=16)


@worker.job("letters", once=True)
def letters(job: ReceivedJob) -> None:
    fates.meet(job)
    book.write("letters", job.id)


@worker.job("hooks", once=True)
async def hooks(job: ReceivedJob) -> None:
    if job.payload["fate"] == fates.SLOW:
        await asyncio.sleep(fates.SLOW_SECONDS)
    else:
        fates.meet(job)
    book.write("hooks", job.id)


@worker.job("limited")
def limited(job: ReceivedJob) -> None:
    book.write("limited", job.id)
