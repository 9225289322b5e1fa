"""Restore: let a deployment take over the tables of a backup. Whatever is there already stays as it is.

Each segment of the backup notes how far it is, in the table of jobs: a run that ended early goes on there, and one more
after the end finds nothing to do. Ticks, ingest and callers may go on meanwhile.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Protocol, TypeVar

from dueline.core import instant, rows
from dueline.core.ports import Clock, ParallelMap, Table
from dueline.core.rows import Key, Row, key
from dueline.errors import InvalidJob, NotYet, Unavailable
from dueline.operations import restore_part
from dueline.operations.restore_part import Backup, Counts, Part, Parts, Progress

# Longer than a step takes that waits for a tick. A run that is killed keeps others out for so long.
LASTS = timedelta(minutes=10)
A = TypeVar("A")
SEGMENTS = 8


class Retrying(Protocol):
    """Makes a call."""

    def __call__(self, call: Callable[[], A], /) -> A: ...


class RestoreLock:
    """The lock of a backup, in the table of jobs. `owner` is unique to the run.

    Of two restores at a time, one could take a row of the other's for one that was seen to.
    """

    def __init__(self, backup: str, *, owner: str, table: Table, clock: Clock, retrying: Retrying) -> None:
        self._backup, self._owner = backup, owner
        self._table, self._clock, self._retrying = table, clock, retrying

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the lock meanwhile. Raises NotYet where another run has it."""
        self._check(self._retrying(lambda: self._table.claim(self._row(LASTS), now=self._clock.now())))
        try:
            yield
        finally:
            if self._read()["owner"] == self._owner:
                self._write(timedelta(0))

    def renew(self) -> None:
        """Have it for longer. Raises NotYet where it was lost, because nothing was heard of this run for so long."""
        self._check(self._read())
        self._write(LASTS)

    def _read(self) -> Row:
        own = self._row(LASTS)
        return self._retrying(lambda: restore_part.read_whole(self._table, [key(own)])).get(key(own), own)

    def _check(self, there: Row) -> None:
        if there["owner"] != self._owner:
            until = instant.text(instant.from_epoch_ms(1000 * int(there["ttl"])))
            raise NotYet(f"another run takes over {self._backup}, or was killed: try again from {until} on")

    def _row(self, lasts: timedelta) -> Row:
        return restore_part.lock_row(self._backup, owner=self._owner, until=self._clock.now() + lasts)

    def _write(self, lasts: timedelta) -> None:
        self._retrying(partial(_write_row, self._table, self._row(lasts)))


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreResult:
    """The result of a run: how many `rows` of the backup were read, and the `jobs` of each queue, by kinds.

    `handed_over` before the backup was made; `settled`: cancelled, moved or sent late; `there` already; `now`: due, and
    handed over at once; `later`: left to ticks; `unreadable`. Of `segments`, so many were `done` before.
    """

    rows: int
    jobs: Mapping[str, Counter[str]]
    done: int
    segments: int = SEGMENTS

    @property
    def is_over(self) -> bool:
        """Return whether runs before had done all."""
        return self.done == self.segments


class Restore:
    """One run over a backup, by an `owner` unique to it.

    `retrying` makes a call, and repeats it while AWS or the network fails.
    """

    def __init__(
        self,
        backup: Backup,
        *,
        parts: Parts,
        table: Table,
        clock: Clock,
        owner: str,
        retrying: Retrying,
        spread: ParallelMap = map,
        on_progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> None:
        self._backup, self._parts, self._table, self._clock = backup, parts, table, clock
        self._retrying, self._spread, self._on_progress = retrying, spread, on_progress
        self._lock = RestoreLock(backup.name, owner=owner, table=table, clock=clock, retrying=retrying)
        self._rows, self._of = 0, 0
        self._with_jobs = set[int]()
        self._jobs: Counts = defaultdict(Counter)

    def look(self) -> RestoreResult:
        """Count what would become of all rows, and change nothing."""
        self._states(take_over=False)
        self._rounds(dict.fromkeys(range(SEGMENTS), Progress()), self._look)
        return self._restored(done=0)

    def apply(self) -> RestoreResult:
        """Take over what no run has yet. The next run after one that is killed repeats a part of each segment.

        Raises NotYet while another run is at it, InvalidJob where a run before had another `hand_over_from`.
        """
        with self._lock.held():
            saved = {segment: self._saved_progress(segment) for segment in range(SEGMENTS)}
            left = {segment: progress for segment, progress in saved.items() if not progress.done}
            if left:
                self._states(take_over=True)
            self._rounds(left, self._take_over, renew=self._lock.renew)
        return self._restored(done=SEGMENTS - len(left))

    def _states(self, *, take_over: bool) -> None:
        """Take over pauses, rates, schedules and locks. What is of a partition goes with its jobs."""
        self._of = self._retrying(self._backup.count)
        after, more = None, True
        while more:
            part = self._retrying(partial(self._backup.states, after=after))
            if strangers := [key for row in part.rows if not rows.in_state_table(key := rows.key(row))]:
                raise InvalidJob(
                    f"row {strangers[0]} is of no table of states: are the two tables the wrong way round?"
                )
            # What the watches note is of the deployment that was backed up.
            kept = [row for row in part.rows if row["sk"] != rows.STATE and row["pk"] != rows.WATCH]
            if take_over:
                list(self._spread(lambda row: self._retrying(partial(self._table.add, row)), kept))
            self._note(part)
            after, more = part.after, part.after is not None

    def _rounds(
        self,
        left: dict[int, Progress],
        step: Callable[[tuple[int, Progress]], tuple[Part, Counts]],
        *,
        renew: Callable[[], None] = lambda: None,
    ) -> None:
        """Take a step in each segment, round after round, until all are at their ends."""
        while left:
            renew()
            for segment, (part, counts) in zip(list(left), self._spread(step, list(left.items())), strict=True):
                left[segment] = Progress(after=part.after)
                self._note(part)
                for queue, its in counts.items():
                    self._jobs[queue].update(its)
            left = {segment: progress for segment, progress in left.items() if progress.after}

    def _look(self, at: tuple[int, Progress]) -> tuple[Part, Counts]:
        part = self._part(*at)
        return part, self._retrying(partial(self._parts.look, part.rows))

    def _take_over(self, at: tuple[int, Progress]) -> tuple[Part, Counts]:
        segment, progress = at
        part, tries = self._part(segment, progress), iter([progress.started])
        if self._retrying(partial(self._parts.has_jobs, part.rows)):
            self._with_jobs.add(segment)
        self._put(segment, Progress(after=progress.after, started=True))
        counts = self._retrying(lambda: self._parts.take_over(part.rows, again=next(tries, True)))
        self._put(segment, Progress(after=part.after, done=part.after is None))
        return part, counts

    def _part(self, segment: int, progress: Progress) -> Part:
        return self._retrying(partial(self._backup.jobs, segment, of=SEGMENTS, after=progress.after))

    def _saved_progress(self, segment: int) -> Progress:
        """Return how far a segment is. A run by another bound would leave out what neither bound hands over."""
        key, own = self._key(segment), self._parts.hand_over_from
        row = self._retrying(lambda: restore_part.read_whole(self._table, [key])).get(key)
        progress = restore_part.read_progress(row)
        if progress.hand_over_from is None:
            return progress
        self._with_jobs.add(segment)
        if progress.hand_over_from != own:
            first, second = (
                f"--hand-over-from {each}" if each else "no --hand-over-from" for each in (progress.hand_over_from, own)
            )
            raise InvalidJob(
                f"this restore was started with {first}, now it runs with {second}: continue it as it was started"
            )
        return progress

    def _put(self, segment: int, progress: Progress) -> None:
        bound = self._parts.hand_over_from if segment in self._with_jobs else None
        progress = replace(progress, hand_over_from=bound)
        row = restore_part.progress_row(self._key(segment), progress, now=self._clock.now())
        self._retrying(partial(_write_row, self._table, row))

    def _key(self, segment: int) -> Key:
        return restore_part.progress_key(self._backup.name, segment, of=SEGMENTS)

    def _note(self, part: Part) -> None:
        self._rows += len(part.rows)
        self._on_progress(self._rows, self._of)

    def _restored(self, *, done: int) -> RestoreResult:
        return RestoreResult(rows=self._rows, jobs=dict(sorted(self._jobs.items())), done=done)


def _write_row(table: Table, row: Row) -> None:
    if table.write([row]):
        raise Unavailable(f"row {key(row)} was left unwritten: try again")
