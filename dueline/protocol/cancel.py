"""Cancel: take jobs back, and say exactly what is promised."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from dueline.errors import RETRYABLE, DuelineError, JobNotFound, NotYet, Unavailable
from dueline.model import instant, rows
from dueline.model.job import JobId, Route, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.rows import Row
from dueline.ports import Clock, Reading, Spread, Table
from dueline.protocol.partitions import check_partition, states_of, undeclared

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancelled:
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
    # Read after the cancellation is written: whoever raises the fence from here on will see the cancellation.
    fences = states_of([id.partition], table=table) if written.asks_for_the_fence else Reading()
    return written.settle(fences, table=table)


class CancelMany:
    """Cancels many jobs of a queue, each for itself, several at once. Begins no request after `until` (monotonic)."""

    def __init__(self, queue: QueueSettings, *, table: Table, clock: Clock, until: float, spread: Spread = map) -> None:
        self._queue = queue
        self._table = table
        self._clock = clock
        self._until = until
        self._spread = spread

    def run(self, ids: Sequence[JobId | DuelineError]) -> list[Cancelled | DuelineError]:
        """Cancel each job; return what that promises, as `cancel` does, or its error, in order.

        An error among the ids, from an earlier check, is handed through. After Throttled or Unavailable nothing was
        promised, and the error names its job. A fence is read once, after all cancellations are written.
        """
        asked = undeclared(ids, queue=self._queue)
        states = self._in_time(lambda: states_of(asked, table=self._table, spread=self._spread))
        written = list(self._spread(self._write, [self._check(id, states) for id in ids]))
        fences = self._in_time(partial(self._fences, written))
        return list(self._spread(partial(self._settle, fences=fences), written))

    def _check(self, id: JobId | DuelineError, states: Reading | DuelineError) -> JobId | DuelineError:
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

    def _fences(self, written: "Iterable[_Written | DuelineError]") -> Reading:
        asking = [each for each in written if isinstance(each, _Written) and each.asks_for_the_fence]
        return states_of(list({each.id.partition for each in asking}), table=self._table, spread=self._spread)

    def _settle(
        self, written: "_Written | DuelineError", *, fences: Reading | DuelineError
    ) -> Cancelled | DuelineError:
        if isinstance(written, DuelineError):
            return written
        if not written.asks_for_the_fence:
            return Cancelled(id=written.id, state=written.settle(Reading(), table=self._table))
        if isinstance(fences, DuelineError):
            return fences.copy(job_id=str(written.id))
        state = self._in_time(lambda: written.settle(fences, table=self._table))
        return (
            state.copy(job_id=str(written.id))
            if isinstance(state, DuelineError)
            else Cancelled(id=written.id, state=state)
        )

    def _in_time(self, ask: Callable[[], _T]) -> _T | DuelineError:
        """Return what was answered, or why there is no answer."""
        if self._clock.monotonic() >= self._until:
            return NotYet("out of time: the cancel is not certain")
        try:
            return ask()
        except RETRYABLE as error:
            return error


@dataclass(frozen=True, kw_only=True, slots=True)
class _Written:
    """A job and its cancellation, as it was there after ours was written."""

    id: JobId
    cancellation: Row

    @property
    def asks_for_the_fence(self) -> bool:
        """Tell whether it is for the fence to say what is promised: not of a direct job, nor a second time."""
        return not rows.is_promised(self.cancellation) and self.id.route is Route.TABLE

    def settle(self, fences: Reading, *, table: Table) -> State:
        """Return what is promised, and note it if it is new; `fences` were read after the cancellation was written."""
        if rows.is_promised(self.cancellation):
            return State.CANCELLED
        if not self.asks_for_the_fence or _fence(self.id, fences) >= instant.text(self.id.due):
            return State.CANCEL_REQUESTED
        table.mark_exact(rows.cancellation_key(self.id))
        return State.CANCELLED


def _fence(id: JobId, fences: Reading) -> str:
    key = rows.state_key(id.partition)
    if key in fences.unread:
        raise Unavailable(f"the fence of {id.partition} could not be read: try again")
    return rows.read_state(fences.rows.get(key)).fence
