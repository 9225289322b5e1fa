"""Table route: write the rows of jobs, then send those that a tick may have missed.

Write the rows, then read the fence of their partitions. A row due after the fence will be seen by a later tick. One
due at or before it may have been missed: it takes the late path, which reads the cancellation, then the clock, sends,
and leaves a note, lest a tick send it again. No clock decides which, so no clock can lose a job.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from dueline.errors import RETRYABLE, DuelineError
from dueline.model import instant, rows
from dueline.model.job import Job, Route
from dueline.model.move_rows import asked_key
from dueline.model.pointer import Pointer
from dueline.model.rows import Key, Row
from dueline.ports import READ_KEYS, WRITE_ROWS, Clock, Reading, Spread, Table
from dueline.protocol.dispatch import Dispatcher, Handed, Parked

Item = TypeVar("Item")
ORDER = attrgetter("id.due", "id.uid")


@dataclass(kw_only=True, slots=True)
class Taken:
    """What became of jobs.

    `written` have rows, `late` were sent by the late path, `parked` can never be sent. `undone` are to be taken again,
    because of `faults`, of which `cause` is the first. The ids of `reused` are other jobs', which stay as they are.
    """

    written: set[Job] = field(default_factory=set)
    undone: set[Job] = field(default_factory=set)
    reused: set[Job] = field(default_factory=set)
    late: list[Job] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)
    cause: DuelineError | None = None

    def note(self, fault: DuelineError) -> None:
        self.faults.add(str(fault))
        self.cause = self.cause or fault


class TableRoute:
    """Takes jobs to the table. `dispatcher` returns that of a queue, for the late path."""

    def __init__(
        self, *, table: Table, dispatcher: Callable[[str], Dispatcher], clock: Clock, spread: Spread = map
    ) -> None:
        self._table = table
        self._dispatcher = dispatcher
        self._clock = clock
        self._spread = spread

    def take(self, jobs: Iterable[Job], *, until: float, have_rows: Collection[Job] = ()) -> Taken:
        """Write each job and see to it that it is sent; begin no send after `until` (monotonic).

        Safe to repeat. Jobs that `have_rows` already get none. A job on the direct route, or past its retention, gets
        no row: it is sent or parked at once.
        """
        taken = Taken()
        return self._see_to(set(jobs), self._write(set(jobs), taken, have_rows), taken, until)

    def take_first(self, job: Job, *, until: float) -> Taken:
        """Take one job whose id may be another's: as `take` does, but never over another job's row."""
        taken = Taken()
        return self._see_to({job}, self._add(job, taken), taken, until)

    def _see_to(self, jobs: set[Job], unwritten: set[Job], taken: Taken, until: float) -> Taken:
        late, unknown = self._not_left_to_a_tick(jobs - unwritten - taken.reused, taken)
        taken.undone = unwritten | unknown
        taken.undone |= self._late_path(late, taken, until)
        return taken

    def _write(self, jobs: set[Job], taken: Taken, have_rows: Collection[Job]) -> set[Job]:
        """Write the rows of jobs that a tick is to find, but those that are there; return what was not written."""
        now = self._clock.now()
        of_table = [(rows.job_row(job), job) for job in jobs if _has_row(job) and now < job.expires]
        of_table.sort(key=lambda pair: str(pair[0]["sk"]))
        by_key = {rows.key(row): job for row, job in of_table}
        pending = [row for row, job in of_table if job not in have_rows]
        write = partial(self._write_some, taken=taken)
        unwritten = {rows.key(row) for row in chain.from_iterable(self._spread(write, _cut(pending, WRITE_ROWS)))}
        left = {job for key, job in by_key.items() if key in unwritten}
        taken.written = set(by_key.values()) - left
        return left

    def _write_some(self, some: Sequence[Row], *, taken: Taken) -> Sequence[Row]:
        try:
            return self._table.write(some)
        except RETRYABLE as fault:
            taken.note(fault)
            return some

    def _add(self, job: Job, taken: Taken) -> set[Job]:
        """Write the row of a job unless another job has its id; return the job if that is not known."""
        if not _has_row(job) or self._clock.now() >= job.expires:
            return set()
        row = rows.job_row(job)
        try:
            is_ours = _content(self._table.add(row)) == _content(row)
        except RETRYABLE as fault:
            taken.note(fault)
            return {job}
        (taken.written if is_ours else taken.reused).add(job)
        return set()

    def _not_left_to_a_tick(self, jobs: set[Job], taken: Taken) -> tuple[set[Job], set[Job]]:
        """Return the jobs that no tick is sure to see, and those whose fence could not be read."""
        by_state = defaultdict[Key, list[Job]](list)
        for job in taken.written:
            by_state[rows.state_key(job.id.partition)].append(job)
        fences = self._read(by_state, taken)
        unknown = set(chain.from_iterable(by_state[key] for key in fences.unread))
        seen_later = set[Job]()
        for key, its in by_state.items():
            fence = rows.read_state(fences.rows.get(key)).fence
            seen_later.update(job for job in its if fence < instant.text(job.id.due))
        return jobs - unknown - seen_later, unknown

    def _late_path(self, late: set[Job], taken: Taken, until: float) -> set[Job]:
        """Send late jobs that are not cancelled, or park those past retention; return those left undone."""
        cancelled, undone = self._cancelled_among(late, taken)
        by_queue: dict[str, list[Job]] = defaultdict(list)
        for job in sorted(late - undone - cancelled, key=ORDER):
            by_queue[job.id.queue].append(job)
        for queue, jobs in by_queue.items():
            handed = self._dispatcher(queue).hand_over(jobs, until=until)
            self._note(handed, taken)
            taken.late += handed.dispatched
            taken.parked += handed.parked
            undone |= set(handed.unfinished)
            taken.faults |= {handed.fault} if handed.unfinished else set()
        return undone

    def _cancelled_among(self, late: set[Job], taken: Taken) -> tuple[set[Job], set[Job]]:
        """Return which jobs are cancelled, and of which that is not known."""
        of_jobs = {job: {rows.cancellation_key(job.id), asked_key(job.id)} for job in late}
        found = self._read(set().union(*of_jobs.values()), taken)
        unread = {job for job, keys in of_jobs.items() if keys & found.unread}
        cancelled = {job for job in late - unread if rows.cancellation_key(job.id) in found.rows}
        asked = [job for job in late - unread - cancelled if asked_key(job.id) in found.rows]
        answers = dict(zip(asked, self._spread(partial(self._is_moved, taken=taken), asked), strict=True))
        cancelled |= {job for job, is_moved in answers.items() if is_moved}
        return cancelled, unread | {job for job, is_moved in answers.items() if is_moved is None}

    def _is_moved(self, job: Job, *, taken: Taken) -> bool | None:
        """Ask for the cancellation of a job of which a move was asked; return None if it is not known."""
        try:
            return self._table.ask_for(rows.cancellation_key(job.id)) is not None
        except RETRYABLE as fault:
            taken.note(fault)
            return None

    def _note(self, handed: Handed, taken: Taken) -> None:
        """Tell the next tick what is handled. A note that is lost costs a repeat, and nothing else."""
        parked = [each.job for each in handed.parked]
        notes = [rows.handled_row(job, dispatched=True) for job in handed.dispatched if _has_row(job)]
        notes += [rows.handled_row(job, dispatched=False) for job in parked if _has_row(job)]
        list(self._spread(partial(self._write_some, taken=taken), _cut(notes, WRITE_ROWS)))

    def _read(self, keys: Iterable[Key], taken: Taken) -> Reading:
        return read_all(keys, table=self._table, spread=self._spread, note=taken.note)


def read_all(keys: Iterable[Key], *, table: Table, spread: Spread, note: Callable[[DuelineError], None]) -> Reading:
    """Read any number of distinct keys. Those whose read failed are unread, and `note` gets why."""

    def read(some: Sequence[Key]) -> Reading:
        try:
            return table.read(some)
        except RETRYABLE as fault:
            note(fault)
            return Reading(unread=frozenset(some))

    readings = list(spread(read, _cut(sorted(keys), READ_KEYS)))
    found = {key: row for reading in readings for key, row in reading.rows.items()}
    return Reading(rows=found, unread=frozenset(chain.from_iterable(reading.unread for reading in readings)))


def _has_row(job: Job) -> bool:
    return job.id.route is Route.TABLE


def _content(row: Row) -> tuple[str, str | None, int]:
    """Return what a worker gets of a job. A pointer is compared without what says how long its object is kept."""
    job = rows.read_job(row)
    payload = job.payload if job.offloaded_bytes is None else Pointer.parse(job.payload).content
    return payload, job.tenant, job.priority


def _cut(items: Sequence[Item], size: int) -> Iterable[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
