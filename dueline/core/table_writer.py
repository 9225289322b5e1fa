"""Write jobs into the table, then dispatch those that a tick may have missed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, reduce
from itertools import chain
from operator import attrgetter

from dueline.core import instant, partitions, rows
from dueline.core.dispatch import PAST_RETENTION, Dispatcher, DispatchResult, ParkedJob
from dueline.core.job import Route, StoredJob
from dueline.core.message import escaped, job_batches
from dueline.core.ports import WRITE_ROWS, BatchRead, Clock, ParallelMap, Pointer, Table, cut, read_all
from dueline.core.rows import Key, Row, move_pending_key
from dueline.errors import RETRYABLE, DuelineError, InvalidJob

ORDER = attrgetter("id.due", "id.uid")


@dataclass(kw_only=True, slots=True)
class WriteResult:
    """What became of jobs.

    `written` have rows, of which no tick can have missed those that are `far`. `late` were sent by the late path,
    `parked` can never be sent. `undone` are to be retried, because of `faults`, of which `cause` is the first. The ids
    of `reused` are other jobs', which stay as they are.
    """

    written: set[StoredJob] = field(default_factory=set)
    far: set[StoredJob] = field(default_factory=set)
    undone: set[StoredJob] = field(default_factory=set)
    reused: set[StoredJob] = field(default_factory=set)
    late: list[StoredJob] = field(default_factory=list)
    parked: list[ParkedJob] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)
    cause: DuelineError | None = None

    def note(self, fault: DuelineError) -> None:
        self.faults.add(str(fault))
        self.cause = self.cause or fault


class TableWriter:
    """Writes jobs into the table. `dispatcher` returns that of a queue, for the late path."""

    def __init__(
        self, *, table: Table, dispatcher: Callable[[str], Dispatcher], clock: Clock, spread: ParallelMap = map
    ) -> None:
        self.table, self.dispatcher, self.clock, self.spread = table, dispatcher, clock, spread

    def write(self, jobs: Iterable[StoredJob], *, until: float, have_rows: Collection[StoredJob] = ()) -> WriteResult:
        """Write each job and ensure that it is sent; begin no send after `until` (monotonic).

        Safe to repeat. Jobs that `have_rows` already get none. A job on the direct route, or past its retention, gets
        no row: it is sent or parked at once.
        """
        result = WriteResult()
        return self._verify_visibility(set(jobs), self._write(set(jobs), result, have_rows), result, until)

    def write_first(self, job: StoredJob, *, until: float) -> WriteResult:
        """Write one job whose id may be another's: as `write` does, but never over another job's row."""
        result = WriteResult()
        return self._verify_visibility({job}, self._add(job, result), result, until)

    def write_new(
        self, jobs: Iterable[StoredJob], *, until: float, have_rows: Collection[StoredJob] = ()
    ) -> WriteResult:
        """Write jobs as `write` does, but none whose id has another job's row: those are `reused`."""
        result, chosen = WriteResult(), set(jobs)
        by_key = {rows.job_key(job.id): job for job in chosen if _has_row(job) and job not in have_rows}
        there = self._read(by_key, result)
        unread = {by_key[key] for key in there.unread}
        result.reused = {by_key[key] for key, row in there.rows.items() if _is_row_of(row, by_key[key]) is False}
        chosen -= unread | result.reused
        self._verify_visibility(chosen, self._write(chosen, result, have_rows), result, until)
        result.undone |= unread
        return result

    def _verify_visibility(
        self, jobs: set[StoredJob], unwritten: set[StoredJob], result: WriteResult, until: float
    ) -> WriteResult:
        late, unknown = self._needs_late_send(jobs - unwritten - result.reused, result)
        result.undone = unwritten | unknown
        result.undone |= self._late_path(late, result, until)
        return result

    def _write(self, jobs: set[StoredJob], result: WriteResult, have_rows: Collection[StoredJob]) -> set[StoredJob]:
        """Write the rows of jobs that a tick is to find, but those that are there; return what was not written."""
        now = self.clock.now()
        of_table = sorted((job for job in jobs if _has_row(job) and now < job.expires), key=ORDER)
        by_key = {rows.job_key(job.id): job for job in of_table}
        pending = [job for job in of_table if job not in have_rows]
        far = {job: latest for job in pending if (latest := partitions.signed_before(job.id.due, now=now))}

        def write(some: Sequence[StoredJob]) -> Sequence[Row]:
            signed_before = min((far[job] for job in some if job in far), default=None)
            return self._write_some([rows.job_row(job) for job in some], result=result, signed_before=signed_before)

        unwritten = {rows.key(row) for row in chain.from_iterable(self.spread(write, cut(pending, WRITE_ROWS)))}
        left = {job for key, job in by_key.items() if key in unwritten}
        result.written = set(by_key.values()) - left
        result.far = far.keys() - left
        return left

    def _write_some(
        self, some: Sequence[Row], *, result: WriteResult, signed_before: datetime | None = None
    ) -> Sequence[Row]:
        try:
            return self.table.write(some, signed_before=signed_before)
        except RETRYABLE as fault:
            result.note(fault)
            return some

    def _add(self, job: StoredJob, result: WriteResult) -> set[StoredJob]:
        """Write the row of a job unless another job has its id; return the job if that is not known."""
        now = self.clock.now()
        if not _has_row(job) or now >= job.expires:
            return set()
        row, signed_before = rows.job_row(job), partitions.signed_before(job.id.due, now=now)
        try:
            there = self.table.add(row, signed_before=signed_before)
        except RETRYABLE as fault:
            result.note(fault)
            return {job}
        is_ours = there == row or _is_row_of(there, job)
        (result.written if is_ours else result.reused).add(job)
        result.far = result.written.copy() if signed_before else set()
        return set()

    def _needs_late_send(self, jobs: set[StoredJob], result: WriteResult) -> tuple[set[StoredJob], set[StoredJob]]:
        """Return the jobs that no tick is sure to see, and those whose fence could not be read."""
        by_state = defaultdict[Key, list[StoredJob]](list)
        for job in result.written - result.far:
            by_state[rows.state_key(job.id.partition)].append(job)
        fences = self._read(by_state, result)
        unknown = set(chain.from_iterable(by_state[key] for key in fences.unread))
        left_to_ticks = set[StoredJob]()
        for key, its in by_state.items():
            fence = rows.read_state(fences.rows.get(key)).fence
            left_to_ticks.update(job for job in its if fence < instant.text(job.id.due))
        return jobs - unknown - left_to_ticks - result.far, unknown

    def _late_path(self, late: set[StoredJob], result: WriteResult, until: float) -> set[StoredJob]:
        """Send late jobs that are not cancelled, or park those past retention; return those left undone."""
        if not late:
            return set()
        cancelled, undone = self._cancelled_among(late, result)
        by_queue: dict[str, list[StoredJob]] = defaultdict(list)
        for job in sorted(late - undone - cancelled, key=ORDER):
            by_queue[job.id.queue].append(job)
        for queue, jobs in by_queue.items():
            sent = self._dispatch(queue, jobs, result, until)
            self._note(sent, result)
            result.late += sent.dispatched
            result.parked += sent.parked
            undone |= set(sent.unfinished)
            result.faults |= {sent.fault} if sent.unfinished else set()
        return undone

    def _dispatch(self, queue: str, jobs: Sequence[StoredJob], result: WriteResult, until: float) -> DispatchResult:
        """Send jobs, or park those that have no row because they were past their retention as it would be written.

        These are not sent if a clock that was ahead is right by now: a cancel that finds no fence past due promises
        that nobody sends them.
        """
        dispatcher = self.dispatcher(queue)
        expired = [job for job in jobs if _has_row(job) and job not in result.written]
        sent = dispatcher.dispatch([job for job in jobs if job not in expired], until=until)
        parked = (dispatcher.park(some, reason=PAST_RETENTION, until=until) for some in job_batches(expired))
        return reduce(DispatchResult.__add__, parked, sent)

    def _cancelled_among(self, late: set[StoredJob], result: WriteResult) -> tuple[set[StoredJob], set[StoredJob]]:
        """Return which jobs are cancelled, and of which that is not known."""
        of_jobs = {job: {rows.cancellation_key(job.id), move_pending_key(job.id)} for job in late}
        read = self._read(set().union(*of_jobs.values()), result)
        unread = {job for job, keys in of_jobs.items() if keys & read.unread}
        cancelled = {job for job in late - unread if rows.cancellation_key(job.id) in read.rows}
        pending = [job for job in late - unread - cancelled if move_pending_key(job.id) in read.rows]
        answers = dict(zip(pending, self.spread(partial(self._is_moved, result=result), pending), strict=True))
        cancelled |= {job for job, is_moved in answers.items() if is_moved}
        return cancelled, unread | {job for job, is_moved in answers.items() if is_moved is None}

    def _is_moved(self, job: StoredJob, *, result: WriteResult) -> bool | None:
        """Read by a barrier whether a job with a pending move was moved; None if that is not known."""
        try:
            return self.table.read_barrier(rows.cancellation_key(job.id)) is not None
        except RETRYABLE as fault:
            result.note(fault)
            return None

    def _note(self, sent: DispatchResult, result: WriteResult) -> None:
        """Note for the next tick what is handled. A lost note costs a repeat, and nothing else."""
        parked = [each.job for each in sent.parked]
        notes = [rows.handled_row(job, dispatched=True) for job in sent.dispatched if _has_row(job)]
        notes += [rows.handled_row(job, dispatched=False) for job in parked if _has_row(job)]
        list(self.spread(partial(self._write_some, result=result), cut(notes, WRITE_ROWS)))

    def _read(self, keys: Iterable[Key], result: WriteResult) -> BatchRead:
        return read_all(keys, table=self.table, spread=self.spread, note=result.note)


def _has_row(job: StoredJob) -> bool:
    return job.id.route is Route.TABLE


def _is_row_of(row: Row, job: StoredJob) -> bool | None:
    """Return whether a row is this job's, and no other's with its id; None if it cannot be read."""
    try:
        return _content(rows.read_job(row)) == _content(job)
    except InvalidJob:
        return None


def _content(job: StoredJob) -> tuple[str, str | None, str | None, int]:
    """Return what a worker gets of a job. A pointer is compared without what says how long its object is kept.

    A direct producer may write pointers in a form of its own, which are compared as text. A payload whose characters
    SQS refuses comes back from its dead letter with these as JSON escapes, which say the same.
    """
    payload = escaped(job.payload)
    if job.offloaded_bytes is not None:
        with suppress(ValueError):
            payload = Pointer.parse(job.payload).content
    return payload, job.kind, job.tenant, job.priority
