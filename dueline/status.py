"""Status: tell what is known of one job."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dueline import rows
from dueline.errors import InvalidJob, JobNotFound, Unavailable
from dueline.job import JobId, Route, State
from dueline.outcome import Outcome, read_outcome
from dueline.ports import Table
from dueline.queue import QueueSettings
from dueline.rows import Key, Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """A job's state, and the job that took its place, if it was rescheduled: it is CANCELLED then.

    `outcome` is what workers noted of it, if its queue tracks: then that tells its state.
    """

    state: State
    moved_to: JobId | None = None
    outcome: Outcome | None = None


def look_up(id: JobId, *, queue: QueueSettings, table: Table, now: datetime) -> State:
    """Return a job's state; as `status_of`, whose promises and errors are the same."""
    return status_of(id, queue=queue, table=table, now=now).state


def status_of(id: JobId, *, queue: QueueSettings, table: Table, now: datetime) -> Status:
    """Return what is known of a job.

    ACCEPTED is what the id alone tells: the job is on its way to the table. DISPATCHED means handed to its queue, of a
    direct job from the start; where the queue tracks, with the `outcome` of an attempt that failed, to be tried again.
    Raises JobNotFound once a job is past its retention and collected, Throttled or Unavailable.
    """
    noted = [rows.outcome_key(id)] if queue.track else []
    reading = table.read([*_keys(id), rows.state_key(id.partition), *noted])
    if reading.unread:
        raise Unavailable(f"the rows of job {id} could not be read: try again")
    cancellation = reading.rows.get(rows.cancellation_key(id))
    outcome = _outcome_of(id, reading.rows, now=now)
    state = outcome.state if outcome else state_of(id, reading.rows, queue=queue, now=now)
    return Status(state=state, moved_to=rows.moved_to(cancellation) if cancellation else None, outcome=outcome)


def state_of(id: JobId, found: Mapping[Key, Row], *, queue: QueueSettings, now: datetime) -> State:
    """Return a job's state as its rows and its partition's state tell it. Raises JobNotFound as `look_up` does."""
    state = rows.state_key(id.partition)
    known = {key: found[key] for key in _keys(id) if rows.is_live(found.get(key), now=now)}
    known |= {state: found[state]} if state in found else {}
    return _taken_back(id, known) or _under_way(id, known, is_kept=now < id.due + queue.retention)


def _keys(id: JobId) -> list[Key]:
    return [rows.cancellation_key(id), rows.parked_key(id), rows.handled_key(id), rows.job_key(id)]


def _outcome_of(id: JobId, found: Mapping[Key, Row], *, now: datetime) -> Outcome | None:
    """Return what workers noted of a job, even after a cancel that came too late, unless one was promised."""
    row, cancellation = found.get(rows.outcome_key(id)), found.get(rows.cancellation_key(id))
    if row is None or (cancellation and cancellation["exact"] and rows.is_live(cancellation, now=now)):
        return None
    try:
        outcome = read_outcome(row)
    except InvalidJob:
        return None
    return outcome if rows.is_live(row, now=now) else None


def _taken_back(id: JobId, known: Mapping[Key, Row]) -> State | None:
    cancellation = known.get(rows.cancellation_key(id))
    if cancellation and cancellation["exact"]:
        return State.CANCELLED
    if rows.parked_key(id) in known and not _is_late_dispatched(id, known):
        return State.PARKED
    return State.CANCEL_REQUESTED if cancellation else None


def _under_way(id: JobId, known: Mapping[Key, Row], *, is_kept: bool) -> State:
    if _is_late_dispatched(id, known):
        return State.DISPATCHED
    if rows.job_key(id) in known:
        cursor = rows.read_state(known.get(rows.state_key(id.partition))).cursor
        return State.DISPATCHED if rows.job_key(id)[1] <= cursor else State.SCHEDULED
    if is_kept:
        return State.DISPATCHED if id.route is Route.DIRECT else State.ACCEPTED
    raise JobNotFound(f"nothing is known of job {id}: it is past its retention")


def _is_late_dispatched(id: JobId, known: Mapping[Key, Row]) -> bool:
    """Tell whether the late path sent a job, perhaps after it had been parked and was put back."""
    handled = known.get(rows.handled_key(id))
    return bool(handled and handled["dispatched"])
