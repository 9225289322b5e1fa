"""Cancel: take jobs back, say exactly what is promised, and find cancelled jobs among received ones."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dueline.core import instant, partitions, rows
from dueline.core.job import MAX_RETENTION, JobId, Partition, Route, State
from dueline.core.keys import jobs_under
from dueline.core.move import MOST_HOPS, too_many_hops
from dueline.core.partitions import check_partition, states_of
from dueline.core.ports import BatchRead, Clock, ParallelMap, Table, read_all
from dueline.core.queue_settings import QueueSettings
from dueline.core.rows import Row
from dueline.errors import RETRYABLE, DuelineError, JobNotFound, NotYet, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelResult:
    """A job that was cancelled, and what that promises: CANCELLED or CANCEL_REQUESTED.

    `moved_from` is the id that was named, if the job was moved since.
    """

    id: JobId
    state: State
    moved_from: JobId | None = None


def cancel(id: JobId, *, queue: QueueSettings, table: Table, clock: Clock) -> CancelResult:
    """Cancel a job by its id, or by one that it had before it was moved.

    CANCELLED is a promise: the job never reaches its queue. CANCEL_REQUESTED: it is or may be in its queue already;
    only workers that use this library still skip it. The job need not exist yet: a cancel that overtakes ingest takes
    effect all the same. Repeats return the same promise. Raises JobNotFound when its partition never existed, or it was
    due so long ago that a move of it may be forgotten; Throttled or Unavailable: then nothing is promised.
    """
    (result,) = CancelMany(queue=queue, table=table, clock=clock).run([id])
    if isinstance(result, DuelineError):
        raise result
    return result


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelMany:
    """Cancels many jobs of a queue, each for itself, several at once. Begins no request after `until` (monotonic)."""

    queue: QueueSettings
    table: Table
    clock: Clock
    until: float = math.inf
    spread: ParallelMap = map

    def run(self, ids: Sequence[JobId | DuelineError]) -> list[CancelResult | DuelineError]:
        """Cancel each job; return what that promises, as `cancel` does, or its error, in order.

        A job that was moved is cancelled as it is now: up to 32 moves are followed, then it is Unavailable. An error
        in place of an id is handed through. After Throttled or Unavailable nothing was promised, and the error names
        its job.
        """
        named = {id.partition for id in ids if isinstance(id, JobId)}
        states = self._states_of({each for each in named if not self.queue.declares(each)})
        return self._cancel([self._checked(id, states) for id in ids])

    def _cancel(self, ids: Sequence[JobId | DuelineError]) -> list[CancelResult | DuelineError]:
        written = self._follow(self._write_each(ids))
        # Read after the cancellations are written: any later raise of a fence will see them.
        undecided = [each for each in written if isinstance(each, _Written) and each.needs_fence]
        fences = self._states_of({each.id.partition for each in undecided})
        results = self.spread(partial(self._settle, fences=fences), written)
        return [_moved(result, original=id) for id, result in zip(ids, results, strict=True)]

    def run_by_keys(self, keys: Sequence[object]) -> list[CancelResult | DuelineError]:
        """Cancel the job of each key, as `run` does; JobNotFound is the error of a key that names none.

        A key's row knows partitions that this process may not know yet: those are not checked.
        """
        try:
            self._check_time()
            ids = jobs_under(keys, self.queue.name, table=self.table, now=self.clock.now(), spread=self.spread)
        except RETRYABLE as error:
            return [error.copy() for _ in keys]
        # No id was named.
        return [
            replace(each, moved_from=None) if isinstance(each, CancelResult) else each for each in self._cancel(ids)
        ]

    def _follow(self, written: "list[_Written | DuelineError]") -> "list[_Written | DuelineError]":
        """Cancel in place of each job that was moved the one that took its place, and so on."""
        for _ in range(MOST_HOPS):
            moved = {place: to for place, each in enumerate(written) if (to := _moved_to(each))}
            if not moved:
                return written
            for place, each in zip(moved, self._write_each(list(moved.values())), strict=True):
                written[place] = each
        return [too_many_hops(each.id) if isinstance(each, _Written) and _moved_to(each) else each for each in written]

    def _write_each(self, ids: Sequence[JobId | DuelineError]) -> "list[_Written | DuelineError]":
        return list(self.spread(self._write, ids))

    def _states_of(self, partitions: Collection[Partition]) -> BatchRead | DuelineError:
        try:
            self._check_time()
            return states_of(partitions, table=self.table, spread=self.spread)
        except RETRYABLE as error:
            return error

    def _check_time(self) -> None:
        if self.clock.monotonic() >= self.until:
            raise NotYet("out of time: the cancel is not certain")

    def _checked(self, id: JobId | DuelineError, states: BatchRead | DuelineError) -> JobId | DuelineError:
        """Return an id, or the error that its partition never existed."""
        if isinstance(id, DuelineError) or self.queue.declares(id.partition):
            return id
        try:
            check_partition(id, _read(states), queue=self.queue)
        except JobNotFound as error:
            return error
        except RETRYABLE as error:
            return error.copy(job_id=str(id))
        return id

    def _write(self, id: JobId | DuelineError) -> "_Written | DuelineError":
        if isinstance(id, DuelineError):
            return id
        now = self.clock.now()
        row, latest = rows.cancellation_row(id, at=now), partitions.signed_before(id.due, now=now)
        try:
            self._check_time()
            if id.route is Route.TABLE and latest:
                # It arrives before any fence can pass its job, whenever it is answered.
                return _Written(id=id, cancellation=self.table.add({**row, "exact": True}, signed_before=latest))
            return _Written(id=id, cancellation=self.table.add(row))
        except RETRYABLE as error:
            return error.copy(job_id=str(id))

    def _settle(
        self, written: "_Written | DuelineError", *, fences: BatchRead | DuelineError
    ) -> CancelResult | DuelineError:
        """Return what is promised, and note it if it is new; `fences` were read after the cancellation was written."""
        if isinstance(written, DuelineError):
            return written
        id, is_promised = written.id, rows.is_promised(written.cancellation)
        if written.needs_fence and not rows.is_cancellation_kept(id, now=self.clock.now()):
            # Whether it was moved is not known any more: nobody is to believe that this stops what took its place.
            return JobNotFound(f"nothing is known of job {id}: it was due over {MAX_RETENTION.days} days ago")
        try:
            if written.needs_fence and _fence(id, _read(fences)) < instant.text(id.due):
                self._check_time()
                self.table.mark_exact(rows.cancellation_key(id))
                is_promised = True
        except RETRYABLE as error:
            return error.copy(job_id=str(id))
        return CancelResult(id=id, state=State.CANCELLED if is_promised else State.CANCEL_REQUESTED)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Written:
    """A job and its cancellation, as it was there after ours was written."""

    id: JobId
    cancellation: Row

    @property
    def needs_fence(self) -> bool:
        """Whether the fence decides what is promised: not for a direct job, nor a second time."""
        return not rows.is_promised(self.cancellation) and self.id.route is Route.TABLE


def _moved_to(written: _Written | DuelineError) -> JobId | None:
    return rows.moved_to(written.cancellation) if isinstance(written, _Written) else None


def _moved(result: CancelResult | DuelineError, *, original: JobId | DuelineError) -> CancelResult | DuelineError:
    """Return a result that says under which id its job was cancelled, if it has another one now."""
    if isinstance(result, CancelResult) and isinstance(original, JobId) and original != result.id:
        return replace(result, moved_from=original)
    return result


def _read(states: BatchRead | DuelineError) -> BatchRead:
    """Return what was read, or raise why it was not."""
    if isinstance(states, DuelineError):
        raise states
    return states


def _fence(id: JobId, fences: BatchRead) -> str:
    key = rows.state_key(id.partition)
    if key in fences.unread:
        raise Unavailable(f"the fence of {id.partition} could not be read: try again")
    return rows.read_state(fences.rows.get(key)).fence


def cancelled_among(ids: Iterable[JobId], *, table: Table) -> set[JobId]:
    """Return the jobs that were cancelled before this call, CANCELLED or CANCEL_REQUESTED.

    For consumers of your own: an id is `JobId.parse` of a message's attribute `dueline-id`, the table a `DynamoTable`.
    Call it just before the handler runs, for a whole received batch. Raises Throttled or Unavailable: then it is not
    known of any of them, and they should be received again.
    """
    by_key = {rows.cancellation_key(id): id for id in ids}
    return {by_key[key] for key in read_all(by_key, table=table).whole("cancellations")}
