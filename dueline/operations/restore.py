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
from typing import Any

from dueline.core import instant, rows
from dueline.core.ports import ParallelMap
from dueline.core.rows import Key, Row, key
from dueline.errors import InvalidJob, NotYet, Unavailable
from dueline.operations import restore_part
from dueline.operations.restore_part import Counts, Part, Parts, Progress

# Longer than a step takes that waits for a tick. A run that is killed keeps others out for so long.
LASTS = timedelta(minutes=10)
SEGMENTS = 8
# Makes a call, and repeats it while AWS or the network fails.
Retrying = Callable[[Callable[[], Any]], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreResult:
    """The result of a run: how many `rows` of the backup were read, and the `jobs` of each queue, by kinds.

    `handed_over` before the backup was made; `settled`: cancelled, moved or sent late; `there` already; `now`: due, and
    handed over at once; `later`: left to ticks; `unreadable`. It `is_over` where runs before had done all.
    """

    rows: int
    jobs: Mapping[str, Counter[str]]
    is_over: bool


class Restore:
    """One run over a backup, by an `owner` unique to it.

    Of two at a time, one could take a row of the other's for one that was seen to: so a lock is held in the table of
    jobs.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        owner: str,
        retrying: Retrying,
        spread: ParallelMap = map,
        on_progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> None:
        self._parts, self._backup, self._table, self._clock = parts, parts.backup, parts.table, parts.clock
        self._owner, self._retrying, self._spread, self._on_progress = owner, retrying, spread, on_progress
        self._rows, self._of = 0, 0
        self._with_jobs = set[int]()
        self._jobs: Counts = defaultdict(Counter)

    def look(self) -> RestoreResult:
        """Count what would become of all rows, and change nothing."""
        self._states(take_over=False)
        self._rounds(dict.fromkeys(range(SEGMENTS), Progress()), self._look)
        return self._restored(is_over=False)

    def apply(self) -> RestoreResult:
        """Take over what no run has yet. The next run after one that is killed repeats a part of each segment.

        Raises NotYet while another run is at it, InvalidJob where a run before had another `hand_over_from`.
        """
        with self._locked():
            saved = {segment: self._saved_progress(segment) for segment in range(SEGMENTS)}
            left = {segment: progress for segment, progress in saved.items() if not progress.done}
            if left:
                self._states(take_over=True)
            self._rounds(left, self._take_over, renew=self._renew)
        return self._restored(is_over=not left)

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
        progress, own = restore_part.read_progress(self._read(self._key(segment))), self._parts.hand_over_from
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
        self._write(restore_part.progress_row(self._key(segment), progress, now=self._clock.now()))

    def _key(self, segment: int) -> Key:
        return restore_part.progress_key(self._backup.name, segment, of=SEGMENTS)

    def _note(self, part: Part) -> None:
        self._rows += len(part.rows)
        self._on_progress(self._rows, self._of)

    def _restored(self, *, is_over: bool) -> RestoreResult:
        return RestoreResult(rows=self._rows, jobs=dict(sorted(self._jobs.items())), is_over=is_over)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Have the lock meanwhile. Raises NotYet where another run has it."""
        self._check_lock(self._retrying(lambda: self._table.claim(self._lock(LASTS), now=self._clock.now())))
        try:
            yield
        finally:
            if self._read_lock()["owner"] == self._owner:
                self._write(self._lock(timedelta(0)))

    def _renew(self) -> None:
        """Have the lock for longer. Raises NotYet where it was lost, because nothing was heard of this run for long."""
        self._check_lock(self._read_lock())
        self._write(self._lock(LASTS))

    def _read_lock(self) -> Row:
        own = self._lock(LASTS)
        return self._read(key(own)) or own

    def _check_lock(self, there: Row) -> None:
        if there["owner"] != self._owner:
            until = instant.text(instant.from_epoch_ms(1000 * int(there["ttl"])))
            raise NotYet(f"another run takes over {self._backup.name}, or was killed: try again from {until} on")

    def _lock(self, lasts: timedelta) -> Row:
        return restore_part.lock_row(self._backup.name, owner=self._owner, until=self._clock.now() + lasts)

    def _read(self, key: Key) -> Row | None:
        return self._retrying(lambda: restore_part.read_whole(self._table, [key])).rows.get(key)

    def _write(self, row: Row) -> None:
        def write() -> None:
            if self._table.write([row]):
                raise Unavailable(f"row {key(row)} was left unwritten: try again")

        self._retrying(write)
