"""Cancel: take jobs back, say exactly what is promised, and find cancelled jobs among received ones."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dueline.core import instant, partitions, rows
from dueline.core.job import MAX_RETENTION, JobId, Partition, Route, State
from dueline.core.keys import jobs_under
from dueline.core.move import MOST_HOPS, naming, too_many_hops
from dueline.core.partitions import check_partition, states_of
from dueline.core.ports import BatchRead, Clock, ParallelMap, Table, read_all
from dueline.core.queue_settings import QueueSettings
from dueline.core.retry import attempt_unless_error
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


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelMany:
    """Cancels many jobs of a queue, each for itself, several at once. Begins no request after `until` (monotonic)."""

    queue: QueueSettings
    table: Table
    clock: Clock
    until: float = math.inf
    spread: ParallelMap = map

    def run(self, ids: Sequence[JobId | DuelineError]) -> list[CancelResult | DuelineError]:
        """Cancel each job by its id, or by one that it had before it was moved; return what that promises, in order.

        CANCELLED is a promise: the job never reaches its queue. CANCEL_REQUESTED: it is or may be in its queue already;
        only workers that use this library still skip it. The job need not exist yet: a cancel that overtakes ingest
        takes effect all the same. Repeats return the same promise. A job that was moved is cancelled as it is now: up
        to 32 moves are followed, then it is Unavailable.

        In place of a result there is JobNotFound where a job's partition never existed, or it was due so long ago that
        a move of it may be forgotten; Throttled or Unavailable, which names its job: then nothing is promised. An error
        in place of an id is handed through.
        """
        named = {id.partition for id in ids if isinstance(id, JobId)}
        states = self._states_of({each for each in named if not self.queue.declares(each)})
        return self._cancel([attempt_unless_error(partial(self._checked, states=states), id) for id in ids])

    def _cancel(self, ids: Sequence[JobId | DuelineError]) -> list[CancelResult | DuelineError]:
        written = list(self.spread(partial(attempt_unless_error, self._write), ids))
        # Read after the cancellations are written: any later raise of a fence will see them.
        undecided = [each for each in written if isinstance(each, _Written) and each.needs_fence]
        fences = self._states_of({each.id.partition for each in undecided})
        return list(self.spread(partial(attempt_unless_error, partial(self._settle, fences=fences)), written))

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

    def _states_of(self, partitions: Collection[Partition]) -> BatchRead | DuelineError:
        try:
            self._check_time()
            return states_of(partitions, table=self.table, spread=self.spread)
        except RETRYABLE as error:
            return error

    def _check_time(self) -> None:
        if self.clock.monotonic() >= self.until:
            raise NotYet("out of time: the cancel is not certain")

    def _checked(self, id: JobId, states: BatchRead | DuelineError) -> JobId:
        """Return an id. Raises JobNotFound when its partition never existed."""
        if not self.queue.declares(id.partition):
            with naming(str(id)):
                check_partition(id, _read(states), queue=self.queue)
        return id

    def _write(self, original: JobId) -> "_Written":
        """Cancel a job, then the one that took its place, if it was moved, and so on."""
        id = original
        for _ in range(MOST_HOPS + 1):
            with naming(str(id)):
                written = _Written(id=id, original=original, cancellation=self._add(id))
            moved = rows.moved_to(written.cancellation)
            if moved is None:
                return written
            id = moved
        raise too_many_hops(written.id)

    def _add(self, id: JobId) -> Row:
        """Write a job's cancellation; return the one that is there then."""
        now = self.clock.now()
        row, latest = rows.cancellation_row(id, at=now), partitions.signed_before(id.due, now=now)
        self._check_time()
        if id.route is Route.TABLE and latest:
            # It arrives before any fence can pass its job, whenever it is answered.
            return self.table.add({**row, "exact": True}, signed_before=latest)
        return self.table.add(row)

    def _settle(self, written: "_Written", *, fences: BatchRead | DuelineError) -> CancelResult:
        """Return what is promised, and note it if it is new; `fences` were read after the cancellation was written."""
        id, is_promised = written.id, rows.is_promised(written.cancellation)
        if written.needs_fence and not rows.is_cancellation_kept(id, now=self.clock.now()):
            # Whether it was moved is not known any more: nobody is to believe that this stops what took its place.
            raise JobNotFound(f"nothing is known of job {id}: it was due over {MAX_RETENTION.days} days ago")
        with naming(str(id)):
            if written.needs_fence and _fence(id, _read(fences)) < instant.text(id.due):
                self._check_time()
                self.table.mark_exact(rows.cancellation_key(id))
                is_promised = True
        moved_from = None if id == written.original else written.original
        state = State.CANCELLED if is_promised else State.CANCEL_REQUESTED
        return CancelResult(id=id, state=state, moved_from=moved_from)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Written:
    """A job and its cancellation, as it was there after ours was written, and the job that was named."""

    id: JobId
    original: JobId
    cancellation: Row

    @property
    def needs_fence(self) -> bool:
        """Whether the fence decides what is promised: not for a direct job, nor a second time."""
        return not rows.is_promised(self.cancellation) and self.id.route is Route.TABLE


def _read(states: BatchRead | DuelineError) -> BatchRead:
    """Return what was read, or raise why it was not."""
    if isinstance(states, DuelineError):
        raise states.copy()
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
