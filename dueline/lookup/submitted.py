"""Submitted: the states of jobs that were just submitted, or that an earlier call submitted under the same key."""

from collections.abc import Sequence
from datetime import datetime

from dueline.errors import DuelineError, JobNotFound
from dueline.lookup.status import Status, status_of, statuses_of
from dueline.model.job import Job, JobId, Route, State
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Clock, Spread, Table
from dueline.protocol.keys import Repeat, job_under
from dueline.protocol.reschedule import Moved, naming
from dueline.protocol.write_through import NotInTable

JobStatus = tuple[JobId, Status]


def submitted_statuses(
    results: Sequence[Job | DuelineError],
    *,
    queue: QueueSettings,
    table: Table,
    clock: Clock,
    until: float,
    spread: Spread = map,
) -> list[JobStatus | DuelineError]:
    """Return the job and the status of each result of a submission, in order, or its error.

    Repeats are looked up, many at once, and none after `until` (monotonic). One that could not be looked up becomes
    Throttled or Unavailable, which names its job; the results beside it stay as they are.
    """
    repeats = [result.id for result in results if isinstance(result, Repeat)]
    repeated = statuses_of(repeats, queue=queue, table=table, clock=clock, until=until, spread=spread)
    return [
        result if isinstance(result, DuelineError) else _status(result, repeated.get(result.id)) for result in results
    ]


def moved_status(moved: Moved, *, queue: QueueSettings, table: Table, now: datetime) -> JobStatus:
    """Return the status of a job that took another's place: scheduled, unless an earlier call put it there.

    Raises Throttled or Unavailable, which name the job: it was moved all the same.
    """
    if not moved.was_before:
        return moved.id, Status(state=State.SCHEDULED)
    with naming(str(moved.id)):
        return moved.id, status_of(moved.id, queue=queue, table=table, now=now)


def status_under(key: str, *, queue: QueueSettings, table: Table, now: datetime) -> JobStatus:
    """Return the job that was scheduled under a key, and its status.

    Raises JobNotFound where there is none, or where it is past its retention; Throttled or Unavailable.
    """
    id = job_under(key, queue.name, table=table, now=now)
    return id, status_of(id, queue=queue, table=table, now=now)


def submitted_state(job: Job) -> State:
    """Return the state of a job that was just submitted."""
    if isinstance(job, NotInTable):
        return job.state
    return State.DISPATCHED if job.id.route is Route.DIRECT else State.SCHEDULED


def _status(job: Job, found: Status | DuelineError | None) -> JobStatus | DuelineError:
    if found is None:
        return job.id, Status(state=submitted_state(job))
    if isinstance(found, JobNotFound):
        # That a repeat was submitted its key vouches for, though nothing else is known of it any more.
        return job.id, Status(state=State.DISPATCHED if job.id.route is Route.DIRECT else State.ACCEPTED)
    return found if isinstance(found, DuelineError) else (job.id, found)
