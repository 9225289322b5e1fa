"""Jobs as the protocols know them."""

import random
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from bench.dynein import cut
from bench.lateness.plan import Scheduled, Wish
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.message import BATCH_MESSAGES, Message
from dueline.ports import Queue

_RETENTION = timedelta(days=7)
_LANES = 4


def job_of(wish: Wish, scheduled: Scheduled) -> Job:
    """Return the job of a wish, by the table's route; its payload is its number."""
    due, uid = scheduled.due(wish), str(uuid.UUID(int=random.Random(wish.number).getrandbits(128), version=4))
    id = JobId(partition=Partition(queue=wish.lane, number=0), route=Route.TABLE, due=due, uid=uid)
    return Job(id=id, payload=str(wish.number), expires=due + _RETENTION)


def send(jobs: Sequence[Job], queue: Queue) -> None:
    """Send jobs to a queue in tens, several at once."""

    def send_ten(batch: list[Job]) -> None:
        if refused := queue.send([Message.of(job) for job in batch]):
            raise RuntimeError(f"not sent: {refused[0].reason}")

    with ThreadPoolExecutor(_LANES) as pool:
        list(pool.map(send_ten, cut(jobs, BATCH_MESSAGES)))
