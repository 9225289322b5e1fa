"""Restore: let a deployment take over the tables of a backup. Whatever is there already stays as it is.

Each segment of the backup notes how far it is, in the table of jobs: a run that ended early goes on there, and one more
after the end finds nothing to do. Ticks, ingest and callers may go on meanwhile. No queue's name begins with `!`.

| row      | pk                  | sk                      | holds                                                     |
|----------|---------------------|-------------------------|-----------------------------------------------------------|
| progress | `!restore#{backup}` | `{segment}.{segments}`  | after: pk, sk as JSON; started, done; hand_over_from; ttl |
| lock     | same                | `run`                   | owner; ttl: until then                                    |
"""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from dueline.core import instant, rows
from dueline.core.job import Partition, StoredJob
from dueline.core.message import ATTRIBUTES_BYTES, Message, batches
from dueline.core.partitions import Lease, Periods
from dueline.core.ports import BatchRead, Clock, ParallelMap, Queue, Table, read_all
from dueline.core.rows import Key, Row
from dueline.core.tick import Entries
from dueline.errors import InvalidJob, NotYet, Unavailable

# Longer than a step takes that waits for a tick. A run that is killed keeps others out for so long.
LASTS = timedelta(minutes=10)
SEGMENTS = 8
_BEFORE_ALL, _KEPT = "!restore#", timedelta(days=45)
# A tick may have the lease of a partition for about three minutes.
_LONGEST_WAIT_SECONDS = 240.0
BEFORE, SETTLED, THERE, NOW, LATER, UNREADABLE = "handed_over", "settled", "there", "now", "later", "unreadable"
Counts = dict[str, Counter[str]]
# Makes a call, and repeats it while AWS or the network fails.
Retrying = Callable[[Callable[[], Any]], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """All rows up to the key `after` are taken over, and of a few after it that is not known if it was `started`.

    `hand_over_from` is the run's, as text, "" without one; None as long as the segment had no job.
    """

    after: Key | None = None
    started: bool = False
    done: bool = False
    hand_over_from: str | None = None

    @classmethod
    def read(cls, row: Row | None) -> "Progress":
        if row is None:
            return cls()
        values: dict[str, Any] = {name: row[name] for name in ("started", "done", "hand_over_from") if name in row}
        return cls(after=tuple(json.loads(str(row["after"]))) if "after" in row else None, **values)

    def row(self, key: Key, *, now: datetime) -> Row:
        after = {"after": json.dumps(self.after)} if self.after else {}
        bound = {} if self.hand_over_from is None else {"hand_over_from": self.hand_over_from}
        flags = {"started": self.started, "done": self.done, "ttl": int((now + _KEPT).timestamp())}
        return {"pk": key[0], "sk": key[1], **after, **bound, **flags}


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Some rows of a table, and the key after which the next ones come; None after the last."""

    rows: Sequence[Row]
    after: Key | None


class Backup(Protocol):
    """Two tables that nobody writes: of jobs, and of states. Each call may raise Throttled or Unavailable."""

    name: str

    def jobs(self, segment: int, *, of: int, after: Key | None) -> Part:
        """Read some rows of the table of jobs that are in one of so many segments.

        The rows of one partition key are in one segment, one after another in the order of their sort keys.
        """

    def states(self, *, after: Key | None) -> Part:
        """Read some rows of the table of states."""

    def read(self, keys: Sequence[Key]) -> BatchRead:
        """Read up to 100 rows of distinct keys, whichever table they are in."""

    def count(self) -> int:
        """Return about how many rows there are."""


def read_whole(table: Table | Backup, keys: Iterable[Key], spread: ParallelMap = map) -> dict[Key, Row]:
    """Read any number of keys, all of them. Raises Throttled or Unavailable."""
    return read_all(set(keys), table=table, spread=spread).whole("some rows")


@dataclass(kw_only=True, slots=True)
class Sorted:
    """The rows of a part: `beside` are of no job, `history` of jobs that are not to be handed over, `jobs` of others.

    `counts` has, by queue, how many jobs there are of each kind.
    """

    beside: list[Row] = field(default_factory=list)
    history: list[Row] = field(default_factory=list)
    jobs: list[StoredJob] = field(default_factory=list)
    counts: Counts = field(default_factory=lambda: defaultdict(Counter))


class Parts:
    """Takes over parts of a backup.

    Jobs due from `hand_over_from` on are handed over; by default, of each partition, those behind its cursor in the
    backup. `owner` is unique to the run. `has_tick` says whether a tick reads a partition here: jobs of others would
    wait for ever. Threads may share it.
    """

    def __init__(
        self,
        backup: Backup,
        *,
        table: Table,
        inbound: Queue,
        clock: Clock,
        lookahead: timedelta,
        owner: str,
        has_tick: Callable[[Partition], bool],
        hand_over_from: datetime | None = None,
        spread: ParallelMap = map,
    ) -> None:
        self.backup, self.table, self.clock = backup, table, clock
        self._inbound, self._has_tick = inbound, has_tick
        self.owner, self._spread = owner, spread
        # Of its leases, which are short: nothing is sent under them, or little.
        period, lease = timedelta(seconds=60), timedelta(seconds=30)
        self._periods = Periods(period=period, lookahead=lookahead, lease=lease, longest_send=lease / 3)
        self.hand_over_from = "" if hand_over_from is None else instant.text(hand_over_from)
        self._bounds: dict[Partition, str] = {}
        # By partition key: the job that was cancelled or handled last. Its row may be in the next part.
        self._settled: dict[str, str] = {}
        self._one_at_a_time = threading.Lock()

    def look(self, part: Sequence[Row]) -> Counts:
        """Count what would become of the jobs of a part, and change nothing. Raises InvalidJob as `take_over` does."""
        sorted_rows = self._sorted(part, self._bound_of)
        there = read_whole(self.table, [rows.job_key(job.id) for job in sorted_rows.jobs], self._spread)
        soon = instant.text(self.clock.now() + self._periods.lookahead)
        for job in sorted_rows.jobs:
            is_soon = instant.text(job.id.due) <= soon
            kind = THERE if rows.job_key(job.id) in there else NOW if is_soon else LATER
            sorted_rows.counts[job.id.queue][kind] += 1
        return sorted_rows.counts

    def has_jobs(self, part: Sequence[Row]) -> bool:
        """Return whether a part has jobs, before anything is changed.

        Raises InvalidJob where it is unknown which of them had been handed over.
        """
        jobs = [row for row in part if rows.prefix_and_kind(str(row["sk"]))[1] == rows.JOB]
        places = {tuple(str(pk).rpartition("#")[::2]) for pk in {row["pk"] for row in jobs}}
        for queue, number in places:
            if number.isdecimal() and (partition := Partition(queue=queue, number=int(number))) not in self._bounds:
                self._bound_of(partition)
        return bool(jobs)

    def take_over(self, part: Sequence[Row], *, again: bool) -> Counts:
        """Take over the rows of a part; count its jobs. `again`: it may have been taken over in part before.

        Raises InvalidJob where no tick would read a job, or it is unknown what had been handed over.
        """
        sorted_rows = self._sorted(part, self._raised_bound)
        self._add(sorted_rows.beside)
        self._add(sorted_rows.history)
        soon = self._not_left_to_a_tick(sorted_rows.jobs)
        later = [job for job in sorted_rows.jobs if job not in soon]
        sent = self._hand_over(soon, again=again)
        there = (soon - set(sent)) | self._there_of(later)
        # As after a submission: the fence may have risen since.
        missed = self._not_left_to_a_tick(later)
        sent += self._hand_over(missed, again=True)
        for kind, jobs in ((NOW, sent), (THERE, there - set(sent)), (LATER, set(later) - missed - there)):
            for job in jobs:
                sorted_rows.counts[job.id.queue][kind] += 1
        return sorted_rows.counts

    def _there_of(self, jobs: Sequence[StoredJob]) -> set[StoredJob]:
        """Write the rows of jobs that have none; return the others."""
        written = list(map(rows.job_row, jobs))
        return {job for job, row, its in zip(jobs, written, self._add(written), strict=True) if its is not row}

    def _sorted(self, part: Sequence[Row], bound_of: Callable[[Partition], str]) -> Sorted:
        """Sort the rows of a part that are not past their TTL, but of jobs that are to be handed over all."""
        now, sorted_rows = self.clock.now(), Sorted()
        for row in part:
            pk, sk = rows.key(row)
            prefix, kind = rows.prefix_and_kind(sk)
            if pk.startswith(_BEFORE_ALL) or self._is_forgotten(row, kind):
                continue
            if sk.startswith("!") or kind != rows.JOB:
                sorted_rows.beside += [row] if _is_kept(row, now) else []
                self._settled[pk] = prefix if kind in (rows.CANCELLED, rows.HANDLED) else self._settled.get(pk, "")
            else:
                self._sort_job(row, sorted_rows, self._settled.get(pk) == prefix, bound_of, now)
        return sorted_rows

    def _sort_job(
        self, row: Row, sorted_rows: Sorted, is_settled: bool, bound_of: Callable[[Partition], str], now: datetime
    ) -> None:
        queue, _, _ = str(row["pk"]).partition("#")
        try:
            job = rows.read_job(row)
        except InvalidJob:
            sorted_rows.history.append(row)
            sorted_rows.counts[queue][UNREADABLE] += 1
            return
        is_before = str(row["sk"]) <= bound_of(job.id.partition)
        if not (is_before or is_settled):
            if not self._has_tick(job.id.partition):
                raise InvalidJob(
                    f"the backup has jobs for partition {job.id.partition}, which no tick reads here: they would wait"
                    " for ever. Add its queue to queues.yaml with as many partitions as it had, deploy, and give the"
                    " command again"
                )
            sorted_rows.jobs.append(job)
            return
        sorted_rows.history += [row] if _is_kept(row, now) else []
        sorted_rows.counts[queue][BEFORE if is_before else SETTLED] += 1

    def _is_forgotten(self, row: Row, kind: str) -> bool:
        """Return whether it is a note of the late path of a job that is wanted once more all the same."""
        is_sent = kind == rows.HANDLED and rows.is_dispatched(row)
        return bool(self.hand_over_from) and is_sent and str(row["sk"]) > self.hand_over_from

    def _bound_of(self, partition: Partition) -> str:
        """Return the sort key up to which all jobs of the backup count as handed over.

        Raises InvalidJob where that is not known: to begin with the first job would send all of them again.
        """
        if self.hand_over_from:
            return self.hand_over_from
        key = rows.state_key(partition)
        state = read_whole(self.backup, [key]).get(key)
        if state is None:
            raise InvalidJob(
                f"the backup has jobs of partition {partition} and no state of it, which says what was handed over: is"
                " its table of states that of the same deployment? If so, say from when on: --hand-over-from"
            )
        return rows.read_state(state).cursor

    def _raised_bound(self, partition: Partition) -> str:
        """Return the bound of a partition, after its fence and cursor were raised: once, before its first row."""
        with self._one_at_a_time:
            if partition not in self._bounds:
                bound = self._bound_of(partition)
                self._raise_cursor(partition, bound)
                self._bounds[partition] = bound
            return self._bounds[partition]

    def _raise_cursor(self, partition: Partition, bound: str) -> None:
        """Raise the fence to the lookahead, and the cursor to the bound, as a tick would that had got there."""
        until = self.clock.monotonic() + _LONGEST_WAIT_SECONDS
        lease = Lease(
            partition, table=self.table, clock=self.clock, periods=self._periods, owner=self.owner, until=until
        )
        if not lease.acquire():
            raise NotYet(f"a tick has partition {partition}: try again in a minute")
        if lease.cursor < bound:
            self._hand_over_others(partition, after=lease.cursor, until=bound)
        if not lease.release(max(lease.cursor, bound)):
            raise NotYet(f"the lease of partition {partition} was lost: try again")

    def _hand_over_others(self, partition: Partition, *, after: str, until: str) -> None:
        """Hand over jobs that the table has by now and the backup has not, before the cursor passes over them."""
        entries, more = Entries(), True
        while more:
            page = self.table.page(partition, after=after, until=until)
            waiting = [each.job for each in entries.of(page.rows, more=page.more)]
            jobs = [job for job in waiting if isinstance(job, StoredJob)]
            backed_up = read_whole(self.backup, [rows.job_key(job.id) for job in jobs])
            self._hand_over({job for job in jobs if rows.job_key(job.id) not in backed_up}, again=True)
            after, more = str(page.rows[-1]["sk"]) if page.rows else after, page.more

    def _not_left_to_a_tick(self, jobs: Sequence[StoredJob]) -> set[StoredJob]:
        keys = {rows.state_key(job.id.partition) for job in jobs}
        states = {key: rows.read_state(row) for key, row in read_whole(self.table, keys, self._spread).items()}
        return {job for job in jobs if instant.text(job.id.due) <= states[rows.state_key(job.id.partition)].fence}

    def _hand_over(self, jobs: set[StoredJob], *, again: bool) -> list[StoredJob]:
        """Send jobs to the inbound queue, unless the table says that it is done; note it, then write their rows."""
        keys = [key for job in jobs for key in _notes_of(job, again=again)]
        noted = read_whole(self.table, keys, self._spread)
        unsent = [job for job in jobs if not any(key in noted for key in _notes_of(job, again=again))]
        unsent.sort(key=lambda job: (job.id.due, job.id.uid))
        list(self._spread(self._send, batches(unsent, size=lambda job: job.size + ATTRIBUTES_BYTES)))
        kept = [job for job in unsent if job.expires > self.clock.now()]
        self._add(rows.handled_row(job, dispatched=True) for job in kept)
        self._add(map(rows.job_row, kept))
        return unsent

    def _send(self, batch: Sequence[StoredJob]) -> None:
        # Ingest decides on each again: it looks for a cancel, and parks what is past its retention.
        refusals = self._inbound.send([Message.of(job, group=job.id.queue) for job in batch])
        if refusals:
            raise Unavailable(f"{len(refusals)} of {len(batch)} jobs were not sent: {refusals[0].reason}")

    def _add(self, written: Iterable[Row]) -> list[Row]:
        return list(self._spread(self.table.add, written))


def _notes_of(job: StoredJob, *, again: bool) -> list[Key]:
    """Return the keys of the rows by which a job needs no handing over; its own row may be of the try before."""
    return [rows.cancellation_key(job.id), rows.handled_key(job.id), *([] if again else [rows.job_key(job.id)])]


def _is_kept(row: Row, now: datetime) -> bool:
    return "ttl" not in row or rows.is_live(row, now=now)


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
    """One run over a backup, by the owner of its parts.

    Of two at a time, one could take a row of the other's for one that was seen to: so a lock is held in the table of
    jobs.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        retrying: Retrying,
        spread: ParallelMap = map,
        on_progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> None:
        self._parts, self._backup, self._table, self._clock = parts, parts.backup, parts.table, parts.clock
        self._retrying, self._spread, self._on_progress = retrying, spread, on_progress
        self._rows, self._of, self._with_jobs = 0, 0, set[int]()
        self._jobs: Counts = defaultdict(Counter)

    def look(self) -> RestoreResult:
        """Count what would become of all rows, and change nothing."""
        self._states(take_over=False)
        self._rounds(dict.fromkeys(range(SEGMENTS), Progress()), self._look)
        return RestoreResult(rows=self._rows, jobs=self._jobs, is_over=False)

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
        return RestoreResult(rows=self._rows, jobs=self._jobs, is_over=not left)

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

    def _part(self, segment: int, progress: Progress) -> Part:
        part: Part = self._retrying(partial(self._backup.jobs, segment, of=SEGMENTS, after=progress.after))
        return part

    def _take_over(self, at: tuple[int, Progress]) -> tuple[Part, Counts]:
        (segment, progress), part = at, self._part(*at)
        if self._retrying(partial(self._parts.has_jobs, part.rows)):
            self._with_jobs.add(segment)
        self._put(segment, Progress(after=progress.after, started=True))
        tries = iter([progress.started])
        counts = self._retrying(lambda: self._parts.take_over(part.rows, again=next(tries, True)))
        self._put(segment, Progress(after=part.after, done=part.after is None))
        return part, counts

    def _saved_progress(self, segment: int) -> Progress:
        """Return how far a segment is. A run by another bound would leave out what neither bound hands over."""
        progress, own = Progress.read(self._read(self._key(segment))), self._parts.hand_over_from
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
        self._write(replace(progress, hand_over_from=bound).row(self._key(segment), now=self._clock.now()))

    def _key(self, segment: int) -> Key:
        return f"{_BEFORE_ALL}{self._backup.name}", f"{segment}.{SEGMENTS}"

    def _note(self, part: Part) -> None:
        self._rows += len(part.rows)
        self._on_progress(self._rows, self._of)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Have the lock meanwhile. Raises NotYet where another run has it."""
        self._check_lock(self._retrying(lambda: self._table.claim(self._lock(LASTS), now=self._clock.now())))
        try:
            yield
        finally:
            if self._read_lock()["owner"] == self._parts.owner:
                self._write(self._lock(timedelta(0)))

    def _renew(self) -> None:
        """Have the lock for longer. Raises NotYet where it was lost, because nothing was heard of this run for long."""
        self._check_lock(self._read_lock())
        self._write(self._lock(LASTS))

    def _read_lock(self) -> Row:
        own = self._lock(LASTS)
        return self._read(rows.key(own)) or own

    def _check_lock(self, there: Row) -> None:
        if there["owner"] != self._parts.owner:
            until = instant.text(instant.from_epoch_ms(1000 * int(there["ttl"])))
            raise NotYet(f"another run takes over {self._backup.name}, or was killed: try again from {until} on")

    def _lock(self, lasts: timedelta) -> Row:
        until = int((self._clock.now() + lasts).timestamp())
        return {"pk": f"{_BEFORE_ALL}{self._backup.name}", "sk": "run", "owner": self._parts.owner, "ttl": until}

    def _read(self, key: Key) -> Row | None:
        read: dict[Key, Row] = self._retrying(lambda: read_whole(self._table, [key]))
        return read.get(key)

    def _write(self, row: Row) -> None:
        def write() -> None:
            if self._table.write([row]):
                raise Unavailable(f"row {rows.key(row)} was left unwritten: try again")

        self._retrying(write)
