"""Restore: let a deployment take over the tables of a backup. Whatever is there already stays as it is.

Each segment of the backup notes how far it is, in the table of jobs: a run that ended early goes on there, and one more
after the end finds nothing to do. Ticks, ingest and callers may go on meanwhile.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from dueline.errors import InvalidJob, Unavailable
from dueline.model import rows
from dueline.model.restore_rows import Progress, progress_key, progress_row, read_progress
from dueline.model.rows import Key
from dueline.operate.backup import Backup, Part, read_whole
from dueline.operate.restore_lock import Ask, RestoreLock
from dueline.operate.restore_part import Counts, Parts
from dueline.ports import Clock, Spread, Table

SEGMENTS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
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
        """Tell whether runs before had done all."""
        return self.done == self.segments


class Restore:
    """One run over a backup, by an `owner` unique to it.

    `ask` makes a call, and repeats it while AWS or the network fails.
    """

    def __init__(
        self,
        backup: Backup,
        *,
        parts: Parts,
        table: Table,
        clock: Clock,
        owner: str,
        ask: Ask,
        spread: Spread = map,
        on_progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> None:
        self._backup, self._parts, self._table, self._clock = backup, parts, table, clock
        self._ask, self._spread, self._on_progress = ask, spread, on_progress
        self._lock = RestoreLock(backup.name, owner=owner, table=table, clock=clock, ask=ask)
        self._rows, self._of = 0, 0
        self._jobs: Counts = defaultdict(Counter)

    def look(self) -> Restored:
        """Count what would become of all rows, and change nothing."""
        self._states(take_over=False)
        self._rounds(dict.fromkeys(range(SEGMENTS), Progress()), self._look)
        return self._restored(done=0)

    def apply(self) -> Restored:
        """Take over what no run has yet. The next run after one that is killed repeats a part of each segment.

        Raises NotYet while another run is at it.
        """
        with self._lock.held():
            known = {segment: self._known(segment) for segment in range(SEGMENTS)}
            left = {segment: progress for segment, progress in known.items() if not progress.done}
            if left:
                self._states(take_over=True)
            self._rounds(left, self._take_over, renew=self._lock.renew)
        return self._restored(done=SEGMENTS - len(left))

    def _states(self, *, take_over: bool) -> None:
        """Take over pauses, rates, schedules and locks. What is of a partition goes with its jobs."""
        self._of = self._ask(self._backup.count)
        after, more = None, True
        while more:
            part = self._ask(partial(self._backup.states, after=after))
            if strangers := [key for row in part.rows if not rows.in_state_table(key := rows.key(row))]:
                raise InvalidJob(
                    f"row {strangers[0]} is of no table of states: are the two tables the wrong way round?"
                )
            kept = [row for row in part.rows if row["sk"] != rows.STATE]
            if take_over:
                list(self._spread(lambda row: self._ask(partial(self._table.add, row)), kept))
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
        return part, self._ask(partial(self._parts.look, part.rows))

    def _take_over(self, at: tuple[int, Progress]) -> tuple[Part, Counts]:
        segment, progress = at
        part, tries = self._part(segment, progress), iter([progress.begun])
        self._put(segment, Progress(after=progress.after, begun=True))
        counts = self._ask(lambda: self._parts.take_over(part.rows, again=next(tries, True)))
        self._put(segment, Progress(after=part.after, done=part.after is None))
        return part, counts

    def _part(self, segment: int, progress: Progress) -> Part:
        return self._ask(partial(self._backup.jobs, segment, of=SEGMENTS, after=progress.after))

    def _known(self, segment: int) -> Progress:
        key = self._key(segment)
        return read_progress(self._ask(lambda: read_whole(self._table, [key])).rows.get(key))

    def _put(self, segment: int, progress: Progress) -> None:
        row = progress_row(self._key(segment), progress, now=self._clock.now())

        def put() -> None:
            if self._table.write([row]):
                raise Unavailable(f"progress {rows.key(row)} was left unwritten: try again")

        self._ask(put)

    def _key(self, segment: int) -> Key:
        return progress_key(self._backup.name, segment, of=SEGMENTS)

    def _note(self, part: Part) -> None:
        self._rows += len(part.rows)
        self._on_progress(self._rows, self._of)

    def _restored(self, *, done: int) -> Restored:
        return Restored(rows=self._rows, jobs=dict(sorted(self._jobs.items())), done=done)
