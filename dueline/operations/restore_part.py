"""Rows of a restore: how far each segment of a backup is taken over.

| row      | pk                  | sk                      | holds                                                     |
|----------|---------------------|-------------------------|-----------------------------------------------------------|
| progress | `!restore#{backup}` | `{segment}.{segments}`  | after: pk, sk as JSON; started, done; hand_over_from; ttl |
| lock     | same                | `run`                   | owner; ttl: until then                                    |

They are in the table of jobs. No queue's name begins with `!`.
"""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from dueline.core import instant, rows
from dueline.core.job import Partition, StoredJob
from dueline.core.message import ATTRIBUTES_BYTES, Message, batches
from dueline.core.partitions import Lease, Periods
from dueline.core.ports import BatchRead, Clock, ParallelMap, Queue, Table, read_all
from dueline.core.rows import Key, Row
from dueline.core.tick import Entries
from dueline.errors import InvalidJob, NotYet, Unavailable

_BEFORE_ALL = "!restore#"
_KEPT = timedelta(days=45)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """All rows up to the key `after` are taken over, and of a few after it that is not known if it was `started`.

    `hand_over_from` is the run's, as text, "" without one; None as long as the segment had no job.
    """

    after: Key | None = None
    started: bool = False
    done: bool = False
    hand_over_from: str | None = None


def progress_key(backup: str, segment: int, *, of: int) -> Key:
    return f"{_BEFORE_ALL}{backup}", f"{segment}.{of}"


def lock_row(backup: str, *, owner: str, until: datetime) -> Row:
    return {"pk": f"{_BEFORE_ALL}{backup}", "sk": "run", "owner": owner, "ttl": int(until.timestamp())}


def progress_row(key: Key, progress: Progress, *, now: datetime) -> Row:
    pk, sk = key
    after = {"after": json.dumps(progress.after)} if progress.after else {}
    bound = {} if progress.hand_over_from is None else {"hand_over_from": progress.hand_over_from}
    flags = {"started": progress.started, "done": progress.done}
    return {"pk": pk, "sk": sk, **after, **bound, **flags, "ttl": int((now + _KEPT).timestamp())}


def read_progress(row: Row | None) -> Progress:
    if row is None:
        return Progress()
    pk, sk = json.loads(str(row["after"])) if "after" in row else ("", "")
    bound = str(row["hand_over_from"]) if "hand_over_from" in row else None
    started, done = bool(row["started"]), bool(row["done"])
    return Progress(after=(pk, sk) if pk else None, started=started, done=done, hand_over_from=bound)


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


def read_whole(table: Table | Backup, keys: Iterable[Key], spread: ParallelMap = map) -> Mapping[Key, Row]:
    """Read any number of keys, all of them. Raises Throttled or Unavailable."""
    return read_all(set(keys), table=table, spread=spread).whole("some rows")


# A tick may have the lease of a partition for about three minutes.
_LONGEST_WAIT_SECONDS = 240.0
BEFORE, SETTLED, THERE, NOW, LATER, UNREADABLE = "handed_over", "settled", "there", "now", "later", "unreadable"

Counts = dict[str, Counter[str]]


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
    backup. `has_tick` says whether a tick reads a partition here: jobs of others would wait for ever. Threads may
    share it.
    """

    def __init__(
        self,
        backup: Backup,
        *,
        table: Table,
        inbound: Queue,
        clock: Clock,
        periods: Periods,
        new_owner: Callable[[], str],
        has_tick: Callable[[Partition], bool],
        hand_over_from: datetime | None = None,
        spread: ParallelMap = map,
    ) -> None:
        self._backup, self._table, self._inbound, self._has_tick = backup, table, inbound, has_tick
        self._clock, self._periods, self._new_owner, self._spread = clock, periods, new_owner, spread
        self.hand_over_from = "" if hand_over_from is None else instant.text(hand_over_from)
        self._bounds: dict[Partition, str] = {}
        # By partition key: the job that was cancelled or handled last. Its row may be in the next part.
        self._settled: dict[str, str] = {}
        self._one_at_a_time = threading.Lock()

    def look(self, part: Sequence[Row]) -> Counts:
        """Count what would become of the jobs of a part, and change nothing. Raises InvalidJob as `take_over` does."""
        sorted_rows = self._sorted(part, self._bound_of)
        there = read_whole(self._table, [rows.job_key(job.id) for job in sorted_rows.jobs], self._spread)
        soon = instant.text(self._clock.now() + self._periods.lookahead)
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
        now, sorted_rows = self._clock.now(), Sorted()
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
            self._check_tick(job.id.partition)
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
        state = read_whole(self._backup, [key]).get(key)
        if state is None:
            raise InvalidJob(
                f"the backup has jobs of partition {partition} and no state of it, which says what was handed over: is"
                " its table of states that of the same deployment? If so, say from when on: --hand-over-from"
            )
        return rows.read_state(state).cursor

    def _check_tick(self, partition: Partition) -> None:
        if not self._has_tick(partition):
            raise InvalidJob(
                f"the backup has jobs for partition {partition}, which no tick reads here: they would wait for ever."
                " Add its queue to queues.yaml with as many partitions as it had, deploy, and give the command again"
            )

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
        until = self._clock.monotonic() + _LONGEST_WAIT_SECONDS
        lease = Lease(
            partition, table=self._table, clock=self._clock, periods=self._periods, owner=self._new_owner(), until=until
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
            page = self._table.page(partition, after=after, until=until)
            waiting = [each.job for each in entries.of(page.rows, more=page.more)]
            jobs = [job for job in waiting if isinstance(job, StoredJob)]
            backed_up = read_whole(self._backup, [rows.job_key(job.id) for job in jobs])
            self._hand_over({job for job in jobs if rows.job_key(job.id) not in backed_up}, again=True)
            after, more = str(page.rows[-1]["sk"]) if page.rows else after, page.more

    def _not_left_to_a_tick(self, jobs: Sequence[StoredJob]) -> set[StoredJob]:
        keys = {rows.state_key(job.id.partition) for job in jobs}
        states = {key: rows.read_state(row) for key, row in read_whole(self._table, keys, self._spread).items()}
        return {job for job in jobs if instant.text(job.id.due) <= states[rows.state_key(job.id.partition)].fence}

    def _hand_over(self, jobs: set[StoredJob], *, again: bool) -> list[StoredJob]:
        """Send jobs to the inbound queue, unless the table says that it is done; note it, then write their rows."""
        keys = [key for job in jobs for key in _notes_of(job, again=again)]
        noted = read_whole(self._table, keys, self._spread)
        unsent = [job for job in jobs if not any(key in noted for key in _notes_of(job, again=again))]
        unsent.sort(key=lambda job: (job.id.due, job.id.uid))
        list(self._spread(self._send, batches(unsent, size=lambda job: job.size + ATTRIBUTES_BYTES)))
        kept = [job for job in unsent if job.expires > self._clock.now()]
        self._add(rows.handled_row(job, dispatched=True) for job in kept)
        self._add(map(rows.job_row, kept))
        return unsent

    def _send(self, batch: Sequence[StoredJob]) -> None:
        # Ingest decides on each again: it looks for a cancel, and parks what is past its retention.
        refusals = self._inbound.send([Message.of(job, group=job.id.queue) for job in batch])
        if refusals:
            raise Unavailable(f"{len(refusals)} of {len(batch)} jobs were not sent: {refusals[0].reason}")

    def _add(self, written: Iterable[Row]) -> list[Row]:
        return list(self._spread(self._table.add, written))


def periods_of_a_restore(lookahead: timedelta) -> Periods:
    """Return the periods of its leases, which are short: nothing is sent under them, or little."""
    lease = timedelta(seconds=30)
    return Periods(period=timedelta(seconds=60), lookahead=lookahead, lease=lease, longest_send=lease / 3)


def _notes_of(job: StoredJob, *, again: bool) -> list[Key]:
    """Return the keys of the rows by which a job needs no handing over; its own row may be of the try before."""
    return [rows.cancellation_key(job.id), rows.handled_key(job.id), *([] if again else [rows.job_key(job.id)])]


def _is_kept(row: Row, now: datetime) -> bool:
    return "ttl" not in row or rows.is_live(row, now=now)
