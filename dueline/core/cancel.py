"""Cancel: take jobs back, say exactly what is promised, and find cancelled jobs among received ones."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from dueline.core import instant, rows
from dueline.core.job import JobId, Route, State
from dueline.core.message import batches
from dueline.core.partitions import check_partition, states_of, undeclared
from dueline.core.ports import READ_KEYS, BatchRead, Clock, ParallelMap, Table
from dueline.core.queue_settings import QueueSettings
from dueline.core.rows import Row
from dueline.errors import RETRYABLE, DuelineError, JobNotFound, NotYet, Unavailable

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelResult:
    """A job that was cancelled, and what that promises: CANCELLED or CANCEL_REQUESTED."""

    id: JobId
    state: State


def cancel(id: JobId, *, queue: QueueSettings, table: Table, now: datetime) -> State:
    """Cancel a job; return CANCELLED or CANCEL_REQUESTED.

    CANCELLED is a promise: the job never reaches its queue. CANCEL_REQUESTED: it is or may be in its queue already;
    only workers that use this library still skip it. The job need not exist yet: a cancel that overtakes ingest takes
    effect all the same. Repeats return the same promise. Raises JobNotFound when its partition never existed; Throttled
    or Unavailable: then nothing is promised.
    """
    check_partition(id, states_of(undeclared([id], queue=queue), table=table), queue=queue)
    written = _Written(id=id, cancellation=table.add(rows.cancellation_row(id, at=now)))
    # Read after the cancellation is written: any later raise of the fence will see the cancellation.
    fences = states_of([id.partition], table=table) if written.needs_fence else BatchRead()
    return written.settle(fences, table=table)


class CancelMany:
    """Cancels many jobs of a queue, each for itself, several at once. Begins no request after `until` (monotonic)."""

    def __init__(
        self, queue: QueueSettings, *, table: Table, clock: Clock, until: float, spread: ParallelMap = map
    ) -> None:
        self._queue = queue
        self._table = table
        self._clock = clock
        self._until = until
        self._spread = spread

    def run(self, ids: Sequence[JobId | DuelineError]) -> list[CancelResult | DuelineError]:
        """Cancel each job; return what that promises, as `cancel` does, or its error, in order.

        An error among the ids, from an earlier check, is handed through. After Throttled or Unavailable nothing was
        promised, and the error names its job. A fence is read once, after all cancellations are written.
        """
        removed = undeclared(ids, queue=self._queue)
        states = self._in_time(lambda: states_of(removed, table=self._table, spread=self._spread))
        written = list(self._spread(self._write, [self._check(id, states) for id in ids]))
        fences = self._in_time(partial(self._fences, written))
        return list(self._spread(partial(self._settle, fences=fences), written))

    def _check(self, id: JobId | DuelineError, states: BatchRead | DuelineError) -> JobId | DuelineError:
        """Return an id, or an error if its partition never was, or if that is not known; as `check_partition`."""
        if isinstance(id, DuelineError) or self._queue.declares(id.partition):
            return id
        if isinstance(states, DuelineError):
            return states.copy(job_id=str(id))
        try:
            check_partition(id, states, queue=self._queue)
        except (JobNotFound, Unavailable) as error:
            return error
        return id

    def _write(self, id: JobId | DuelineError) -> "_Written | DuelineError":
        if isinstance(id, DuelineError):
            return id
        added = self._in_time(lambda: self._table.add(rows.cancellation_row(id, at=self._clock.now())))
        return added.copy(job_id=str(id)) if isinstance(added, DuelineError) else _Written(id=id, cancellation=added)

    def _fences(self, written: "Iterable[_Written | DuelineError]") -> BatchRead:
        pending = [each for each in written if isinstance(each, _Written) and each.needs_fence]
        return states_of(list({each.id.partition for each in pending}), table=self._table, spread=self._spread)

    def _settle(
        self, written: "_Written | DuelineError", *, fences: BatchRead | DuelineError
    ) -> CancelResult | DuelineError:
        if isinstance(written, DuelineError):
            return written
        if not written.needs_fence:
            return CancelResult(id=written.id, state=written.settle(BatchRead(), table=self._table))
        if isinstance(fences, DuelineError):
            return fences.copy(job_id=str(written.id))
        state = self._in_time(lambda: written.settle(fences, table=self._table))
        return (
            state.copy(job_id=str(written.id))
            if isinstance(state, DuelineError)
            else CancelResult(id=written.id, state=state)
        )

    def _in_time(self, call: Callable[[], _T]) -> _T | DuelineError:
        """Return what was answered, or why there is no answer."""
        if self._clock.monotonic() >= self._until:
            return NotYet("out of time: the cancel is not certain")
        try:
            return call()
        except RETRYABLE as error:
            return error


@dataclass(frozen=True, kw_only=True, slots=True)
class _Written:
    """A job and its cancellation, as it was there after ours was written."""

    id: JobId
    cancellation: Row

    @property
    def needs_fence(self) -> bool:
        """Whether the fence decides what is promised: not for a direct job, nor a second time."""
        return not rows.is_promised(self.cancellation) and self.id.route is Route.TABLE

    def settle(self, fences: BatchRead, *, table: Table) -> State:
        """Return what is promised, and note it if it is new; `fences` were read after the cancellation was written."""
        if rows.is_promised(self.cancellation):
            return State.CANCELLED
        if not self.needs_fence or _fence(self.id, fences) >= instant.text(self.id.due):
            return State.CANCEL_REQUESTED
        table.mark_exact(rows.cancellation_key(self.id))
        return State.CANCELLED


def _fence(id: JobId, fences: BatchRead) -> str:
    key = rows.state_key(id.partition)
    if key in fences.unread:
        raise Unavailable(f"the fence of {id.partition} could not be read: try again")
    return rows.read_state(fences.rows.get(key)).fence


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancellations:
    """The jobs that were cancelled, CANCELLED or CANCEL_REQUESTED, and the errors of those that could not be read."""

    cancelled: set[JobId] = field(default_factory=set)
    unread: dict[JobId, DuelineError] = field(default_factory=dict)


def cancelled_among(ids: Iterable[JobId], *, table: Table) -> set[JobId]:
    """Return the jobs that were cancelled before this call, CANCELLED or CANCEL_REQUESTED.

    For consumers of your own: an id is `JobId.parse` of a message's attribute `dueline-id`, the table a `DynamoTable`.
    Call it just before the handler runs, for a whole received batch. Raises Throttled or Unavailable: then it is not
    known of any of them, and they should be received again.
    """
    result = cancellations_of(ids, table=table)
    for fault in result.unread.values():
        raise fault
    return result.cancelled


def cancellations_of(ids: Iterable[JobId], *, table: Table) -> Cancellations:
    """Return which jobs were cancelled, read 100 at a time; those that could not be read do not fail the others."""
    result = Cancellations()
    for some in batches(dict.fromkeys(ids), size=lambda _: 0, most=READ_KEYS):
        by_key = {rows.cancellation_key(id): id for id in some}
        try:
            reading = table.read(list(by_key))
        except RETRYABLE as fault:
            result.unread.update(dict.fromkeys(some, fault))
            continue
        left = Unavailable(f"{len(reading.unread)} cancellations could not be read: try again")
        result.unread.update((by_key[key], left) for key in reading.unread)
        result.cancelled.update(by_key[key] for key in reading.rows)
    return result
