"""Status: the state of one job or of many, as recorded, and how its last attempt ended."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from dueline.core import instant, rows
from dueline.core.job import JobId, Route, State, StoredJob, SubmitResult, check_kind, origin_fields
from dueline.core.keys import read_key
from dueline.core.move import MOST_HOPS, naming, too_many_hops
from dueline.core.partitions import check_partition
from dueline.core.ports import READ_KEYS, BatchRead, Clock, ParallelMap, Table, cut
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import FURTHEST, MAX_DELAY_SECONDS
from dueline.core.reschedule import RescheduleResult
from dueline.core.retry import attempt
from dueline.core.rows import Key, Row, moved_to
from dueline.core.text import plain
from dueline.errors import RETRYABLE, DuelineError, InvalidJob, JobNotFound, NotYet, Unavailable

FINAL = (State.SUCCEEDED, State.FAILED, State.SKIPPED)
OF_WORKERS = (State.RUNNING, State.DISPATCHED, *FINAL)
# Of a listing: any of those.
ATTEMPTED = "attempted"
MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A job's last attempt: its state, the number of attempts so far, and when the last one started and ended.

    DISPATCHED: the last attempt failed, and the job waits for the next. SKIPPED: another job of its schedule had not
    ended, so it did not run. `error` is the name of an exception type or a short reason, never a payload; up to 200
    printable ASCII characters are kept. Raises InvalidJob.
    """

    state: State
    attempts: int
    started: datetime
    ended: datetime | None = None
    error: str | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.state not in OF_WORKERS:
            raise InvalidJob(f"an outcome is {self.state}: it must be one of {', '.join(OF_WORKERS)}")
        if self.attempts < 1:
            raise InvalidJob(f"attempts is {self.attempts}: it must be 1 or more")
        if (self.ended is None) is not (self.state is State.RUNNING):
            raise InvalidJob(f"ended is {self.ended} of an outcome that is {self.state}: all but running have it")
        if any(at is not None and at.tzinfo is None for at in (self.started, self.ended)):
            raise InvalidJob(f"started is {self.started}, ended {self.ended}: each must have a time zone")
        check_kind(self.kind)
        if self.error is not None:
            object.__setattr__(self, "error", plain(self.error, most=MAX_ERROR_CHARACTERS))

    @property
    def fields(self) -> dict[str, Any]:
        """What its row and answers about the job have of it: no state, no kind, and nothing that is not known."""
        times = {"started": self.started, "ended": self.ended}
        texts = {name: instant.text(at) for name, at in times.items() if at is not None}
        return {"attempts": self.attempts, **texts, **({} if self.error is None else {"error": self.error})}


def note_outcome(id: JobId, outcome: Outcome, *, expires: datetime, table: Table) -> bool:
    """Note a job's outcome, kept until the job `expires`; return whether it was newer, as `Table.record` defines it.

    Safe to repeat. Raises Throttled or Unavailable.
    """
    return table.record(outcome_row(id, outcome, expires=expires))


def outcome_row(id: JobId, outcome: Outcome, *, expires: datetime) -> Row:
    pk, sk = rows.outcome_key(id)
    kind = {} if outcome.kind is None else {"kind": outcome.kind}
    state, ttl = outcome.state.value, int(expires.timestamp())
    return {"pk": pk, "sk": sk, "state": state, **outcome.fields, **kind, "ttl": ttl}


def read_outcome(row: Row) -> Outcome:
    """Return the outcome that a row holds. Raises InvalidJob when it cannot be read: any worker may write it."""
    try:
        int(row["ttl"])
        return Outcome(
            state=State(str(row["state"])),
            attempts=int(row["attempts"]),
            started=instant.parse(str(row["started"])),
            ended=instant.parse(str(row["ended"])) if "ended" in row else None,
            error=str(row["error"]) if "error" in row else None,
            kind=str(row["kind"]) if "kind" in row else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidJob(f"row {rows.key(row)} cannot be read: {type(error).__name__}: {error}") from None


CLOCKS_DIFFER = timedelta(minutes=5)
_KEYS_READ = 6
_MOST_AT_ONCE = READ_KEYS // _KEYS_READ


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """A job's state. `moved_from` is the id that was named, if the job was moved since and has another.

    If its queue is set to `track` its jobs, `outcome` is what workers noted of its last attempt, and decides the state.
    Of a job by the table's route, which keeps its row, there is its `key`, and of a run of a schedule its `schedule`
    and `scheduled_for`. `job` is what the table holds of a single job that is looked up, while it waits there.
    """

    state: State
    moved_from: JobId | None = None
    outcome: Outcome | None = None
    key: str | None = None
    schedule: str | None = None
    scheduled_for: datetime | None = None
    job: StoredJob | None = None


# A job's id, and its status.
JobStatus = tuple[JobId, Status]


def status_of(id: JobId, *, queue: QueueSettings, table: Table, now: datetime) -> JobStatus:
    """Return a job, by its id or by one that it had before it was moved, and its status.

    It is what a record shows, never a guess. UNRECORDED: there is none. A direct job leaves none until a worker of a
    queue that tracks begins it; one by the table's route is on its way to the table, or was never scheduled. To be
    sure, schedule it again under the same id or key. DISPATCHED: it was sent to its queue; with an `outcome`, an
    attempt failed and the job waits for a retry. Raises JobNotFound for an id that no submission can have made, past a
    job's retention, or when its partition never existed; Throttled or Unavailable, also after 32 moves.
    """
    result = _follow([id], queue=queue, read=table.read)[id]
    if isinstance(result, DuelineError):
        raise result
    present, reading = result
    status = _status(id, present, reading, queue=queue, now=now)
    return present, replace(status, job=_waiting(present, status.state, reading))


def statuses_of(
    ids: Iterable[JobId], *, queue: QueueSettings, table: Table, clock: Clock, until: float, spread: ParallelMap = map
) -> dict[JobId, JobStatus | DuelineError]:
    """Return for each of these ids what `status_of` returns or raises, but not its `job`.

    Jobs are read in batches, several at once. Begins no request after `until` (monotonic).
    """
    distinct = list(dict.fromkeys(ids))
    look_up = partial(_statuses, queue=queue, table=table, clock=clock, until=until)
    return dict(chain.from_iterable(spread(look_up, list(cut(distinct, _MOST_AT_ONCE)))))


def _statuses(
    ids: Sequence[JobId], *, queue: QueueSettings, table: Table, clock: Clock, until: float
) -> list[tuple[JobId, JobStatus | DuelineError]]:
    """Return the statuses of as many jobs as fit into one read."""

    def read(keys: Sequence[Key]) -> BatchRead:
        if clock.monotonic() >= until:
            raise NotYet("out of time: it was not looked up")
        return table.read(keys)

    def status(id: JobId) -> JobStatus:
        result = by_id[id]
        if isinstance(result, DuelineError):
            raise result.copy(job_id=str(id))
        present, reading = result
        return present, _status(id, present, reading, queue=queue, now=now)

    by_id, now = _follow(ids, queue=queue, read=read), clock.now()
    return [(id, attempt(status, id)) for id in ids]


def _follow(
    ids: Sequence[JobId], *, queue: QueueSettings, read: Callable[[Sequence[Key]], BatchRead]
) -> dict[JobId, tuple[JobId, BatchRead] | DuelineError]:
    """Return for each job the id that it has now, and what was read of it.

    That takes a read for all of them, and one more a move for those that were moved.
    """
    results = dict[JobId, tuple[JobId, BatchRead] | DuelineError]()
    pending = {id: id for id in ids}
    for _ in range(MOST_HOPS + 1):
        if not pending:
            break
        try:
            reading = read(list(dict.fromkeys(key for id in pending.values() for key in _keys_read(id, queue))))
        except RETRYABLE as error:
            return results | dict.fromkeys(pending, error)
        results |= {original: (id, reading) for original, id in pending.items()}
        pending = {original: to for original, id in pending.items() if (to := _moved_to(id, reading))}
    return results | {original: too_many_hops(id) for original, id in pending.items()}


def _moved_to(id: JobId, reading: BatchRead) -> JobId | None:
    cancellation = reading.rows.get(rows.cancellation_key(id))
    return moved_to(cancellation) if cancellation else None


def _status(original: JobId, id: JobId, reading: BatchRead, *, queue: QueueSettings, now: datetime) -> Status:
    existing = reading.rows
    if not reading.unread.isdisjoint(_keys_read(id, queue)):
        raise Unavailable(f"the rows of job {id} could not be read: try again").copy(job_id=str(id))
    outcome = _outcome_of(id, existing, now=now)
    state = outcome.state if outcome else state_of(id, existing, queue=queue, now=now)
    moved = None if id == original else original
    return Status(state=state, moved_from=moved, outcome=outcome, **kept_fields(existing.get(rows.job_key(id))))


def _waiting(id: JobId, state: State, reading: BatchRead) -> StoredJob | None:
    """Return a job that waits in the table, unless its row cannot be read."""
    row = reading.rows.get(rows.job_key(id)) if state is State.SCHEDULED else None
    try:
        return rows.read_job(row) if row else None
    except InvalidJob:
        return None


def state_of(id: JobId, existing: Mapping[Key, Row], *, queue: QueueSettings, now: datetime) -> State:
    """Return a job's state, from its rows and its partition's state. Raises JobNotFound as `status_of` does."""
    state = rows.state_key(id.partition)
    live = {key: existing[key] for key in _keys(id) if rows.is_live(existing.get(key), now=now)}
    live |= {state: existing[state]} if state in existing else {}
    if by_rows := _withdrawn(id, live) or _under_way(id, live):
        return by_rows
    check_partition(id, BatchRead(rows=live), queue=queue)
    if now >= id.due + queue.retention:
        raise JobNotFound(f"nothing is known of job {id}: it is past its retention")
    furthest = timedelta(seconds=MAX_DELAY_SECONDS) if id.route is Route.DIRECT else FURTHEST
    if id.due > now + furthest + CLOCKS_DIFFER:
        raise JobNotFound(f"no job has the id {id}: by its route, none can be due so late")
    return State.UNRECORDED


def _keys_read(id: JobId, queue: QueueSettings) -> list[Key]:
    """Return the keys of all rows that decide a job's state, `_KEYS_READ` at most."""
    return [*_keys(id), rows.state_key(id.partition), *([rows.outcome_key(id)] if queue.track else [])]


def _keys(id: JobId) -> list[Key]:
    return [rows.cancellation_key(id), rows.parked_key(id), rows.handled_key(id), rows.job_key(id)]


def kept_fields(row: Row | None) -> dict[str, Any]:
    """Return what a status has of a job's row, which outlives its dispatch: its key, its schedule, and for when."""
    row = row or {}
    key = {"key": str(row["key"])} if "key" in row else {}
    try:
        origin = origin_fields(row.get("schedule"))
    except InvalidJob:
        origin = {}
    return {**key, **{name: origin[name] for name in ("schedule", "scheduled_for") if name in origin}}


def _outcome_of(id: JobId, existing: Mapping[Key, Row], *, now: datetime) -> Outcome | None:
    """Return what workers noted of a job, even after a cancel that came too late, unless one was promised."""
    row, cancellation = existing.get(rows.outcome_key(id)), existing.get(rows.cancellation_key(id))
    if row is None or (cancellation and rows.is_promised(cancellation) and rows.is_live(cancellation, now=now)):
        return None
    try:
        outcome = read_outcome(row)
    except InvalidJob:
        return None
    return outcome if rows.is_live(row, now=now) else None


def _withdrawn(id: JobId, live: Mapping[Key, Row]) -> State | None:
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
    """Return whether the late path sent a job, perhaps after it had been parked and was put back."""
    return rows.is_dispatched(live.get(rows.handled_key(id)))


def submitted_statuses(
    results: Sequence[SubmitResult | DuelineError],
    *,
    queue: QueueSettings,
    table: Table,
    clock: Clock,
    until: float,
    spread: ParallelMap = map,
) -> list[JobStatus | DuelineError]:
    """Return the job and the status, without the key, of each result of a submission, in order, or its error.

    Repeats are looked up, many at once, and none after `until` (monotonic). One that could not be looked up becomes
    Throttled or Unavailable, which names its job; the results beside it stay as they are.
    """
    repeats = [each.job.id for each in results if isinstance(each, SubmitResult) and each.is_repeat]
    look_up = partial(statuses_of, queue=queue, table=table, clock=clock, until=until, spread=spread)
    repeated = look_up(repeats) if repeats else {}
    return [
        result if isinstance(result, DuelineError) else _job_status(result, repeated.get(result.job.id))
        for result in results
    ]


def moved_status(moved: RescheduleResult, *, queue: QueueSettings, table: Table, now: datetime) -> JobStatus:
    """Return the status of a job that was moved, with `moved_from`, without its key.

    It is scheduled, unless an earlier call moved it.

    Raises Throttled or Unavailable, which name the job: it was moved all the same.
    """
    moved_from = moved.moved_from if moved.moved_from != moved.id else None
    if not moved.was_before:
        return moved.id, Status(state=State.SCHEDULED, moved_from=moved_from)
    with naming(str(moved.id)):
        id, status = status_of(moved.id, queue=queue, table=table, now=now)
    # The old job's cancellation is the record; the new row may not be seen yet.
    state = State.ACCEPTED if status.state is State.UNRECORDED else status.state
    return id, replace(status, state=state, job=None, key=None, moved_from=moved_from)


def status_under(key: str, *, queue: QueueSettings, table: Table, now: datetime) -> JobStatus:
    """Return the job that was scheduled under a key, and its status.

    Raises JobNotFound where there is none, or where it is past its retention; Throttled or Unavailable.
    """
    name = read_key(key, queue.name, table=table, now=now)
    try:
        id, status = status_of(name.id, queue=queue, table=table, now=now)
    except JobNotFound:
        # The key's row knows partitions that this process may not know yet.
        id, status = name.id, Status(state=State.UNRECORDED)
    is_by_key = name.is_done and status.state is State.UNRECORDED
    return id, _by_key(id) if is_by_key else replace(status, moved_from=None)


def _job_status(result: SubmitResult, existing: JobStatus | DuelineError | None) -> JobStatus | DuelineError:
    id = result.job.id
    if result.state is not None:
        return id, Status(state=result.state, moved_from=result.moved_from)
    if existing is None or isinstance(existing, JobNotFound):
        return id, _by_key(id)
    if isinstance(existing, DuelineError):
        return existing
    present, status = existing
    return present, _by_key(present) if status.state is State.UNRECORDED else replace(status, key=None)


def _by_key(id: JobId) -> Status:
    """Return the status of a job of which its key's row alone says that it was submitted."""
    return Status(state=State.DISPATCHED if id.route is Route.DIRECT else State.ACCEPTED)
