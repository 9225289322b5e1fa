"""Tick: one pass over a partition, which dispatches what is due in the order of its rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from math import ceil, inf

from dueline.core import instant, rows
from dueline.core.dispatch import OUT_OF_TIME, SWEEP_SECONDS, Dispatcher, DispatchResult, ParkedJob
from dueline.core.job import StoredJob
from dueline.core.partitions import Lease
from dueline.core.ports import WRITE_ROWS, ParallelMap, cut
from dueline.core.rows import MOVE_PENDING, MOVE_TARGET, Key, Row
from dueline.errors import RETRYABLE, InvalidJob, QueueNotFound, Throttled, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreadable:
    """A job's row that cannot be read, and why."""

    row: Row
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A job's row in reading order; None if the job was cancelled or handled before, or if no row of it was read.

    `may_be_moved`: a move of it may be under way, and no cancellation was read. `maybe_present`: it is the target of a
    move, and no row of it was read.
    """

    key: str
    row: Row | None
    may_be_moved: bool = False
    maybe_present: bool = False

    @property
    def job(self) -> StoredJob | Unreadable | None:
        """What to dispatch, read each time: all the payloads of a page, unpacked, may be hundreds of MB."""
        try:
            return None if self.row is None else rows.read_job(self.row)
        except InvalidJob as error:
            return Unreadable(row=self.row or {}, reason=str(error))


class Entries:
    """Pairs each job's row with the rows before it, which may be on an earlier page.

    These are its cancellation or the late path's note, by which it is settled, and the rows of moves.
    """

    def __init__(self) -> None:
        self._settled = self._move_pending = self._move_target = ""

    def of(self, page: Sequence[Row], *, more: bool = False) -> list[Entry]:
        """Return the entries of a page; without `more`, also that of a move's target after the last row."""
        entries: list[Entry] = []
        for row in page:
            prefix, kind = rows.prefix_and_kind(str(row["sk"]))
            entries += self._unread_target(before=prefix)
            entries += self._entries_of(row, prefix, kind)
        return entries if more else [*entries, *self._unread_target()]

    def _entries_of(self, row: Row, prefix: str, kind: str) -> Iterator[Entry]:
        if kind in (MOVE_PENDING, MOVE_TARGET) and not rows.has_room(prefix):
            return
        if kind == MOVE_PENDING:
            self._move_pending = prefix
        elif kind == MOVE_TARGET:
            self._move_target = prefix
        elif kind in (rows.CANCELLED, rows.HANDLED):
            self._settled, self._move_target = prefix, ""
        elif kind == rows.JOB:
            is_settled, self._move_target = prefix == self._settled, ""
            may_be_moved = prefix == self._move_pending and not is_settled
            yield Entry(key=str(row["sk"]), row=None if is_settled else row, may_be_moved=may_be_moved)

    def _unread_target(self, *, before: str = "") -> Iterator[Entry]:
        """Yield the target of a move of which no row was read, where reading goes on with another job."""
        target = self._move_target
        if target and target != before:
            self._move_target = ""
            is_moved_on = target == self._move_pending
            yield Entry(key=f"{target}#{rows.JOB}", row=None, may_be_moved=is_moved_on, maybe_present=True)


def resolve_moves(
    entries: Iterable[Entry], *, pk: str, read_barrier: Callable[[Key], Row | None], spread: ParallelMap
) -> tuple[dict[str, Entry], dict[str, str]]:
    """Look up by a barrier what a read may not show of moves; return those entries, and why others failed, by key.

    Once the fence is past them, the answer stays true: no move succeeds any more.
    """

    def resolve(entry: Entry) -> Entry | str:
        try:
            return _resolve_move(entry, pk, read_barrier)
        except RETRYABLE as fault:
            return str(fault)

    unsure = [each for each in entries if each.may_be_moved or each.maybe_present]
    answers = {each.key: answer for each, answer in zip(unsure, spread(resolve, unsure), strict=True)}
    resolved = {key: answer for key, answer in answers.items() if isinstance(answer, Entry)}
    return resolved, {key: answer for key, answer in answers.items() if isinstance(answer, str)}


def _resolve_move(entry: Entry, pk: str, read_barrier: Callable[[Key], Row | None]) -> Entry:
    row = read_barrier((pk, entry.key)) if entry.maybe_present else entry.row
    prefix, _ = rows.prefix_and_kind(entry.key)
    is_moved = row is not None and entry.may_be_moved and read_barrier((pk, f"{prefix}#{rows.CANCELLED}")) is not None
    return replace(entry, row=None if is_moved else row)


WAVE_JOBS = 100
# Fewer would be a second of Lambda for fewer jobs, and batches that are not full.
SWEPT_JOBS = 300
# DynamoDB's page of rows of 1 KB. Unpacked, they have 256 MB at the very most, of the function's 512.
MOST_SWEPT_JOBS = 1000
CHECKPOINT_JOBS = 300
# Of a tick's period: a sweep takes a second, with what SQS takes a little more, and the last of a page has fewer jobs.
_SWEEPS_SHARE, _LONGEST_SWEEP = 2 / 3, SWEEP_SECONDS + 0.4
_NOTE_ATTEMPTS = 3
_SHARE_OF_PERIOD = 0.75
_BACKLOGS_SHARE = 0.25


def waiting_jobs(keys: Sequence[str], *, until: str) -> float:
    """Return how many jobs wait up to a key, if they are due as densely as those of a page with these keys.

    >>> waiting_jobs(["2026-01-01T00:00:00.000Z#a#job", "2026-01-01T00:00:10.000Z#b#job"], until="2026-01-01T00:01:00Z")
    12.0
    """
    first, last, end = map(rows.due_at, (keys[0], keys[-1], until))
    if not (first and last and end) or keys[-1] >= until:
        return len(keys)
    if first == last:
        return inf if len(keys) > 1 else 1
    return len(keys) * ((end - first) / (last - first))


def wave_jobs(waiting: float, *, seconds: float) -> int | None:
    """Return how many jobs a wave has: so many that what waits goes out in the sweeps for which there is time.

    None if there is no time for half of them.

    >>> [wave_jobs(waiting, seconds=40) for waiting in (20, 14_000, 50_000, 100_000, inf)]
    [300, 490, 1000, None, None]
    """
    of_each = waiting / max(1.0, seconds / _LONGEST_SWEEP)
    if of_each > 2 * MOST_SWEPT_JOBS:
        return None
    return max(SWEPT_JOBS, min(MOST_SWEPT_JOBS, ceil(of_each)))


@dataclass(kw_only=True, slots=True)
class TickResult:
    """What a tick did.

    `owned_lease`: it had the lease to its end. `finished`: all jobs due up to the fence were dispatched. `progress` is
    the due time of the oldest job that it had to leave, or else of the last one that it dispatched. `fault` is what
    kept it from finishing.
    """

    owned_lease: bool = False
    finished: bool = False
    dispatched: int = 0
    parked: list[ParkedJob] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    progress: datetime | None = None
    fault: str = ""

    def lateness(self, now: datetime) -> float | None:
        """Return how many seconds past due the oldest undispatched job is at most; None if that is unknown."""
        if self.finished:
            return 0.0
        return max(0.0, (now - self.progress).total_seconds()) if self.progress else None


class Tick:
    """One pass over a partition under one lease; run it once."""

    def __init__(self, lease: Lease, *, dispatcher: Dispatcher) -> None:
        self._lease, self._dispatcher = lease, dispatcher
        self._partition, self._table, self._clock = lease.partition, lease.table, lease.clock
        self._done = TickResult()
        self._cursor = rows.FIRST
        self._unsaved = 0
        self._has_read_rows = False
        self._entries = Entries()
        # What failed in this tick: whatever needs it waits for the next, and the rest goes on.
        self._down: frozenset[int] = frozenset()
        self._is_parking_down = False
        self._is_held_back = False
        # A tick that is held back ends before the next one fires, which tries again what failed here.
        self._next_fires = self._clock.monotonic() + lease.period_seconds * _SHARE_OF_PERIOD
        # And it leaves the rest of a long backlog for after what is not due yet: at this key.
        self._leaves_backlog = self._clock.monotonic() + lease.period_seconds * _BACKLOGS_SHARE
        self._left_at = ""
        # A tick that has more to send than its sweeps take sends the rest at once.
        self._sweeps_end = self._clock.monotonic() + lease.period_seconds * _SWEEPS_SHARE
        # Nor are jobs swept, a page at a time, that are due so densely that this would take longer.
        self._is_herd = False
        self._period_ends = self._clock.monotonic() + lease.period_seconds
        self._goal = ""

    def run(self) -> TickResult:
        """Dispatch what is due up to the fence, as far as time allows.

        While another tick has the partition, return at once: `owned_lease` is False, and `progress` is that one's.
        Raises Throttled or Unavailable when the lease could not be requested. A later fault stops the tick, and the
        next one goes on from the cursor.
        """
        if not self._lease.acquire():
            self._done.progress = rows.due_at(self._lease.cursor)
            return self._done
        self._done.owned_lease = True
        self._cursor, self._goal = self._lease.cursor, self._lease.fence
        for step in (self._read_on, self._release):
            try:
                step()
            except RETRYABLE as fault:
                self._done.fault = str(fault)
        return self._done

    def _read_on(self) -> None:
        """Read from the cursor to the fence.

        Once it is held back, what is due from now on is read before the rest of a long backlog: else a priority whose
        SQS queue fails for hours would keep the tick from the new jobs of the others.
        """
        if self._read(self._cursor) and self._left_at:
            # The last row of the backlog that was read may be of the job that comes next in it.
            now, of_backlog, self._entries = instant.text(self._clock.now()), self._entries, Entries()
            if self._read(now):
                self._entries = of_backlog
                self._read(self._left_at, until=now)

    def _read(self, after: str, *, until: str = "") -> bool:
        """Dispatch what lies behind a key, to the fence or to `until`; return whether the tick may go on."""
        more, end = True, ""
        while more or end < (until or self._end):
            if self._is_to_leave_backlog(after):
                self._left_at = after
                return True
            end = until or self._end
            page = self._table.page(self._partition, after=after, until=end)
            entries = self._entries.of(page.rows, more=page.more)
            self._has_read_rows |= bool(page.rows)
            if not (self._dispatch_all(entries, more=page.more) and self._keep_lease()):
                return False
            last = str(page.rows[-1]["sk"]) if page.rows else after
            after, more = last if page.more else end, page.more
        if not self._is_held_back:
            self._cursor, self._done.finished = end, True
        return True

    @property
    def _end(self) -> str:
        """How far to read: up to the fence as it was first, and on with a lease that was renewed beyond a period.

        Then the next tick found it held; else that has as much time for its sweeps as this one.
        """
        is_long = self._clock.monotonic() >= self._period_ends
        return rows.end_of(self._lease.fence if is_long else self._goal)

    def _is_to_leave_backlog(self, after: str) -> bool:
        is_long = self._is_held_back and self._clock.monotonic() >= self._leaves_backlog
        return is_long and not self._left_at and after < instant.text(self._clock.now())

    def _dispatch_all(self, entries: Sequence[Entry], *, more: bool) -> bool:
        """Dispatch a page in waves; return whether the tick may go on."""
        self._is_herd = False
        size = self._wave_jobs(entries, more=more)
        self._is_herd = size is None
        return all(self._keep_lease(len(wave)) and self._dispatch(wave) for wave in cut(entries, size or WAVE_JOBS))

    def _wave_jobs(self, entries: Sequence[Entry], *, more: bool) -> int | None:
        """Return how many jobs of a page go out together; None if it is too dense to be swept in time."""
        swept_from, last = self._swept_from(), rows.due_at(entries[-1].key) if entries else None
        if swept_from is None or last is None or last < swept_from:
            return WAVE_JOBS
        waiting = waiting_jobs([entry.key for entry in entries], until=self._goal if more else entries[-1].key)
        size = wave_jobs(waiting, seconds=self._sweeps_end - self._clock.monotonic())
        return size and ceil(len(entries) / ceil(len(entries) / size))

    def _swept_from(self) -> datetime | None:
        """Return from which due time on jobs wait for their fraction; None if all of a page are to be sent at once.

        What is due within a period is: earlier ticks should have sent it, so there is a backlog.
        """
        is_over = self._is_herd or self._clock.monotonic() >= self._sweeps_end
        return None if is_over else self._clock.now() + timedelta(seconds=self._lease.period_seconds)

    def _dispatch(self, wave: Sequence[Entry]) -> bool:
        """Dispatch a wave; return whether the tick may go on.

        The cursor stops before the first unfinished job. What is finished beyond is noted, so that no tick repeats it.
        """
        wave, unknown = self._resolved(wave)
        read = {entry.key: entry.job for entry in wave}
        jobs_read = [read[entry.key] for entry in wave if entry.key not in unknown]
        jobs = [each for each in jobs_read if isinstance(each, StoredJob)]
        waiting = {job for job in jobs if self._is_to_wait(job)}
        result = self._send([job for job in jobs if job not in waiting])
        unfinished = {rows.job_key(job.id)[1] for job in waiting.union(result.unfinished)} | unknown
        self._down |= result.down
        self._is_parking_down |= result.is_parking_down
        for each in jobs_read:
            if isinstance(each, Unreadable) and not self._is_parked(each, unfinished):
                unfinished.add(str(each.row["sk"]))
        beyond = self._move_cursor(wave, read, unfinished)
        self._unsaved += len(wave)
        return self._note(beyond, read, {each.job for each in result.parked})

    def _send(self, jobs: Sequence[StoredJob]) -> DispatchResult:
        swept_from = self._swept_from()
        result = self._dispatcher.dispatch(jobs, until=self._lease.stop_at, swept_from=swept_from)
        self._done.dispatched += len(result.dispatched)
        self._done.parked += result.parked
        self._done.fault = result.fault or self._done.fault
        return result

    def _is_to_wait(self, job: StoredJob) -> bool:
        """Return whether a job is left to the next tick: its SQS queue failed this one, or the dead-letter queue."""
        return job.priority in self._down or (self._is_parking_down and self._clock.now() >= job.expires)

    def _move_cursor(
        self, wave: Sequence[Entry], read: Mapping[str, StoredJob | Unreadable | None], unfinished: set[str]
    ) -> list[str]:
        """Move the cursor to the first unfinished job; return the keys of the finished ones beyond."""
        beyond = []
        for entry in wave:
            if not self._is_held_back and isinstance(job := read[entry.key], StoredJob):
                self._done.progress = job.id.due
            self._is_held_back |= entry.key in unfinished
            if not self._is_held_back:
                self._cursor = entry.key
            elif entry.key not in unfinished:
                beyond.append(entry.key)
        return beyond

    def _note(
        self, beyond: Sequence[str], read: Mapping[str, StoredJob | Unreadable | None], parked: set[StoredJob]
    ) -> bool:
        """Note jobs as handled that the cursor has not passed; return whether that was done, else the tick stops."""
        now, notes = self._clock.now(), list[Row]()
        for key in beyond:
            if isinstance(job := read[key], StoredJob):
                notes.append(rows.handled_row(job, dispatched=job not in parked))
            elif job is not None:
                notes.append(rows.handled_note(rows.key(job.row), at=now))
        left = notes
        for _ in range(_NOTE_ATTEMPTS):
            left = list(chain.from_iterable(self._dispatcher.spread(self._write, cut(left, WRITE_ROWS))))
            if not left:
                break
        return not left

    def _write(self, some: Sequence[Row]) -> Sequence[Row]:
        try:
            return self._table.write(some)
        except RETRYABLE as fault:
            self._done.fault = str(fault)
            return some

    def _resolved(self, wave: Sequence[Entry]) -> tuple[list[Entry], set[str]]:
        """Return a wave as moves left it, and the keys of which that is unknown: the tick stops there."""
        resolved, unknown = resolve_moves(
            wave, pk=str(self._partition), read_barrier=self._read_barrier, spread=self._dispatcher.spread
        )
        self._done.fault = next(iter(unknown.values()), self._done.fault)
        return [resolved.get(entry.key, entry) for entry in wave], set(unknown)

    def _read_barrier(self, key: Key) -> Row | None:
        if self._clock.monotonic() >= self._lease.stop_at:
            raise Unavailable(OUT_OF_TIME)
        return self._table.read_barrier(key)

    def _is_parked(self, entry: Unreadable, unfinished: set[str]) -> bool:
        """Park a row, unless the cursor stops before it and it cannot be noted; return whether that was done."""
        key = str(entry.row["sk"])
        is_beyond = self._is_held_back or min(unfinished, default=key) < key
        if is_beyond and not rows.has_room(rows.prefix_and_kind(key)[0]):
            return False
        if self._is_parking_down:
            return False
        try:
            self._dispatcher.parking.park_row(entry.row, reason=entry.reason)
        except (QueueNotFound, Throttled, Unavailable) as fault:
            self._done.fault, self._is_parking_down = f"not parked: {fault}", True
            return False
        self._done.unreadable.append(entry)
        return True

    def _keep_lease(self, next_jobs: int = 0) -> bool:
        """Renew the lease in time, and move the cursor before a wave with which over 300 jobs would be repeated."""
        is_much = self._unsaved > 0 and self._unsaved + next_jobs > CHECKPOINT_JOBS
        if is_much or self._clock.monotonic() >= self._lease.renew_at:
            self._unsaved = 0
            self._done.owned_lease = self._lease.checkpoint(self._cursor)
        stop_at = min(self._lease.stop_at, self._next_fires) if self._is_held_back else self._lease.stop_at
        return self._done.owned_lease and self._clock.monotonic() < stop_at

    def _release(self) -> None:
        if self._done.owned_lease and (self._has_read_rows or self._lease.outlasts_the_period):
            self._done.owned_lease = self._lease.release(self._cursor)
