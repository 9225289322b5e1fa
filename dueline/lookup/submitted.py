"""Submitted: what is told of jobs that were just submitted, and of those that an earlier call submitted."""

from collections.abc import Sequence
from datetime import datetime

from dueline.errors import DuelineError, JobNotFound
from dueline.lookup.status import Status, status_of, statuses_of
from dueline.model.job import Job, JobId, Route, State
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Clock, Spread, Table
from dueline.protocol.keys import Repeat
from dueline.protocol.reschedule import Moved, naming

Told = tuple[JobId, Status]


def told_of(
    results: Sequence[Job | DuelineError],
    *,
    queue: QueueSettings,
    table: Table,
    clock: Clock,
    until: float,
    spread: Spread = map,
) -> list[Told | DuelineError]:
    """Return what is told of each result of a submission, in order: a job and its state, or the error.

    Repeats are looked up, many at once, and none after `until` (monotonic). One that could not be is an error of its
    own, Throttled or Unavailable, which names its job: what was submitted beside it is submitted, and told as such.
    """
    repeats = [result.id for result in results if isinstance(result, Repeat)]
    known = statuses_of(repeats, queue=queue, table=table, clock=clock, until=until, spread=spread)
    return [result if isinstance(result, DuelineError) else _told(result, known.get(result.id)) for result in results]


def told_of_move(moved: Moved, *, queue: QueueSettings, table: Table, now: datetime) -> Told:
    """Return what is told of a job that took another's place: scheduled, unless an earlier call put it there.

    Raises Throttled or Unavailable, which name the job: it is there all the same.
    """
    if not moved.was_before:
        return moved.id, Status(state=State.SCHEDULED)
    with naming(str(moved.id)):
        return moved.id, status_of(moved.id, queue=queue, table=table, now=now)


def submitted_state(id: JobId) -> State:
    """Return the state of a job that was just submitted."""
    return State.DISPATCHED if id.route is Route.DIRECT else State.ACCEPTED


def _told(job: Job, known: Status | DuelineError | None) -> Told | DuelineError:
    # That a repeat was submitted its key vouches for, even where nothing else is known of it.
    if known is None or isinstance(known, JobNotFound):
        return job.id, Status(state=submitted_state(job.id))
    return known if isinstance(known, DuelineError) else (job.id, known)
