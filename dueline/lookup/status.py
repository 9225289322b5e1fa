"""Status: the state of one job, or of many."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain

from dueline.errors import RETRYABLE, DuelineError, InvalidJob, JobNotFound, NotYet, Unavailable
from dueline.lookup.outcome import Outcome, read_outcome
from dueline.model import nominal, rows
from dueline.model.job import JobId, Route, State
from dueline.model.move_rows import moved_to
from dueline.model.queue_settings import QueueSettings
from dueline.model.rows import Key, Row
from dueline.ports import READ_KEYS, Clock, Reading, Spread, Table
from dueline.protocol.partitions import check_partition

_KEYS_READ = 6
_MOST_AT_ONCE = READ_KEYS // _KEYS_READ


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """A job's state. A rescheduled job is CANCELLED, and `moved_to` is the job that replaced it.

    If its queue is set to `track` its jobs, `outcome` is what workers noted of its last attempt, and decides the state.
    Of a run of a schedule by the table's route, which has a row that says so, there are its `schedule` and `nominal`.
    """

    state: State
    moved_to: JobId | None = None
    outcome: Outcome | None = None
    schedule: str | None = None
    nominal: datetime | None = None


def look_up(id: JobId, *, queue: QueueSettings, table: Table, now: datetime) -> State:
    """Return a job's state; as `status_of`, whose promises and errors are the same."""
    return status_of(id, queue=queue, table=table, now=now).state


def status_of(id: JobId, *, queue: QueueSettings, table: Table, now: datetime) -> Status:
    """Return the status of a job.

    ACCEPTED: the id is valid, but the job has no row yet; it is on its way to the table. DISPATCHED: it was sent to its
    queue, which a direct job is from the start; with an `outcome`, an attempt failed and the job waits for a retry.
    Raises JobNotFound once a job is past its retention, or when its partition never existed; Throttled or Unavailable.
    """
    return _status(id, table.read(_keys_read(id, queue)), queue=queue, now=now)


def statuses_of(
    ids: Iterable[JobId], *, queue: QueueSettings, table: Table, clock: Clock, until: float, spread: Spread = map
) -> dict[JobId, Status | DuelineError]:
    """Return for each job, by its id, what `status_of` returns or raises; jobs are read in batches, several at once.

    Begins no request after `until` (monotonic).
    """
    distinct = list(dict.fromkeys(ids))
    some = [distinct[start : start + _MOST_AT_ONCE] for start in range(0, len(distinct), _MOST_AT_ONCE)]
    read = partial(_statuses, queue=queue, table=table, clock=clock, until=until)
    return dict(chain.from_iterable(spread(read, some)))


def _statuses(
    ids: Sequence[JobId], *, queue: QueueSettings, table: Table, clock: Clock, until: float
) -> list[tuple[JobId, Status | DuelineError]]:
    """Return the statuses of as many jobs as fit into one read."""
    try:
        if clock.monotonic() >= until:
            raise NotYet("out of time: it was not looked up")
        reading = table.read(list(dict.fromkeys(key for id in ids for key in _keys_read(id, queue))))
    except RETRYABLE as error:
        return [(id, error.copy(job_id=str(id))) for id in ids]
    return [(id, _status_or_error(id, reading, queue=queue, now=clock.now())) for id in ids]


def _status_or_error(id: JobId, reading: Reading, *, queue: QueueSettings, now: datetime) -> Status | DuelineError:
    try:
        return _status(id, reading, queue=queue, now=now)
    except DuelineError as error:
        return error


def _status(id: JobId, reading: Reading, *, queue: QueueSettings, now: datetime) -> Status:
    if not reading.unread.isdisjoint(_keys_read(id, queue)):
        raise Unavailable(f"the rows of job {id} could not be read: try again").copy(job_id=str(id))
    cancellation = reading.rows.get(rows.cancellation_key(id))
    outcome = _outcome_of(id, reading.rows, now=now)
    state = outcome.state if outcome else state_of(id, reading.rows, queue=queue, now=now)
    moved = moved_to(cancellation) if cancellation and rows.is_promised(cancellation) else None
    schedule, of_nominal = _origin_of(reading.rows.get(rows.job_key(id)))
    return Status(state=state, moved_to=moved, outcome=outcome, schedule=schedule, nominal=of_nominal)


def state_of(id: JobId, found: Mapping[Key, Row], *, queue: QueueSettings, now: datetime) -> State:
    """Return a job's state, from its rows and its partition's state. Raises JobNotFound as `look_up` does."""
    state = rows.state_key(id.partition)
    live = {key: found[key] for key in _keys(id) if rows.is_live(found.get(key), now=now)}
    live |= {state: found[state]} if state in found else {}
    if by_rows := _taken_back(id, live) or _under_way(id, live):
        return by_rows
    check_partition(id, Reading(rows=live), queue=queue)
    if now >= id.due + queue.retention:
        raise JobNotFound(f"nothing is known of job {id}: it is past its retention")
    return State.DISPATCHED if id.route is Route.DIRECT else State.ACCEPTED


def _keys_read(id: JobId, queue: QueueSettings) -> list[Key]:
    """Return the keys of all rows that decide a job's state, `_KEYS_READ` at most."""
    return [*_keys(id), rows.state_key(id.partition), *([rows.outcome_key(id)] if queue.track else [])]


def _keys(id: JobId) -> list[Key]:
    return [rows.cancellation_key(id), rows.parked_key(id), rows.handled_key(id), rows.job_key(id)]


def _origin_of(row: Row | None) -> tuple[str | None, datetime | None]:
    """Return which schedule made a job, and for when, as far as its row tells that."""
    try:
        told = nominal.fields((row or {}).get("schedule"))
    except InvalidJob:
        return None, None
    return told.get("schedule"), told.get("nominal")


def _outcome_of(id: JobId, found: Mapping[Key, Row], *, now: datetime) -> Outcome | None:
    """Return what workers noted of a job, even after a cancel that came too late, unless one was promised."""
    row, cancellation = found.get(rows.outcome_key(id)), found.get(rows.cancellation_key(id))
    if row is None or (cancellation and rows.is_promised(cancellation) and rows.is_live(cancellation, now=now)):
        return None
    try:
        outcome = read_outcome(row)
    except InvalidJob:
        return None
    return outcome if rows.is_live(row, now=now) else None


def _taken_back(id: JobId, live: Mapping[Key, Row]) -> State | None:
    cancellation = live.get(rows.cancellation_key(id))
    if cancellation and rows.is_promised(cancellation):
        return State.CANCELLED
    if rows.parked_key(id) in live and not _is_late_dispatched(id, live):
        return State.PARKED
    return State.CANCEL_REQUESTED if cancellation else None


def _under_way(id: JobId, live: Mapping[Key, Row]) -> State | None:
    if _is_late_dispatched(id, live):
        return State.DISPATCHED
    if rows.job_key(id) in live:
        cursor = rows.read_state(live.get(rows.state_key(id.partition))).cursor
        return State.DISPATCHED if rows.job_key(id)[1] <= cursor else State.SCHEDULED
    return None


def _is_late_dispatched(id: JobId, live: Mapping[Key, Row]) -> bool:
    """Tell whether the late path sent a job, perhaps after it had been parked and was put back."""
    handled = live.get(rows.handled_key(id))
    return bool(handled and handled["dispatched"])
