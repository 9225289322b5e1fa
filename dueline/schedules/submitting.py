"""Submitting: take jobs to the table where nothing may go on before all of them are there."""

from collections.abc import Sequence

from dueline.errors import Unavailable
from dueline.model.job import Job
from dueline.model.queue_settings import PLANNER
from dueline.protocol.table_route import TableRoute


def submit(jobs: Sequence[Job], *, route: TableRoute, until: float) -> None:
    """Write each job and see to it that it is sent; begin no send after `until` (monotonic). Safe to repeat.

    Raises Throttled or Unavailable unless that is done for all of them. A job that can never be sent is parked, but of
    a planning job nobody would know.
    """
    if not jobs:
        return
    taken = route.take(jobs, until=until)
    if taken.undone:
        raise taken.cause or Unavailable(f"{len(taken.undone)} jobs were not submitted: {'; '.join(taken.faults)}")
    for parked in taken.parked:
        if parked.job.id.queue == PLANNER.name:
            raise Unavailable(f"planning job {parked.job.id} was parked: {parked.reason}")
