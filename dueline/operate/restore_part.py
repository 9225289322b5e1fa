"""Take over a part of a backup, by the rules by which jobs are submitted, so that ticks may go on meanwhile.

What a tick has yet to reach gets a row, and then its partition's fence is read again. What no tick may reach any more
goes through the inbound queue and ingest, and only then gets its row: a row that is there was seen to.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline.errors import InvalidJob, NotYet, Unavailable
from dueline.model import instant, rows
from dueline.model.job import Job, Partition
from dueline.model.message import ATTRIBUTES_BYTES, Message, batches
from dueline.model.restore_rows import is_progress
from dueline.model.rows import Key, Row
from dueline.operate.backup import Backup, cursor_in, read_whole
from dueline.ports import Clock, Queue, Spread, Table
from dueline.protocol.entries import Entries
from dueline.protocol.lease import Lease, Periods

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
    jobs: list[Job] = field(default_factory=list)
    counts: Counts = field(default_factory=lambda: defaultdict(Counter))


class Parts:
    """Takes over parts of a backup.

    Jobs due from `hand_over_from` on are handed over; by default, of each partition, those behind its cursor in the
    backup. `has_tick` tells whether a tick reads a partition here: jobs of others would wait for ever. Threads may
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
        spread: Spread = map,
    ) -> None:
        self._backup, self._table, self._inbound, self._has_tick = backup, table, inbound, has_tick
        self._clock, self._periods, self._new_owner, self._spread = clock, periods, new_owner, spread
        self._from = None if hand_over_from is None else instant.text(hand_over_from)
        self._bounds: dict[Partition, str] = {}
        # By partition key: the job that was cancelled or handled last. Its row may be in the next part.
        self._settled: dict[str, str] = {}
        self._one_at_a_time = threading.Lock()

    def look(self, part: Sequence[Row]) -> Counts:
        """Count what would become of the jobs of a part, and change nothing. Raises InvalidJob as `take_over` does."""
        found = self._sorted(part, self._bound_of)
        there = read_whole(self._table, [rows.job_key(job.id) for job in found.jobs], self._spread).rows
        soon = instant.text(self._clock.now() + self._periods.lookahead)
        for job in found.jobs:
            is_soon = instant.text(job.id.due) <= soon
            kind = THERE if rows.job_key(job.id) in there else NOW if is_soon else LATER
            found.counts[job.id.queue][kind] += 1
        return found.counts

    def take_over(self, part: Sequence[Row], *, again: bool) -> Counts:
        """Take over the rows of a part; count its jobs. `again`: it may have been taken over in part before.

        Raises InvalidJob where no tick would read a job, or nothing tells what had been handed over.
        """
        found = self._sorted(part, self._begun)
        self._add(found.beside)
        self._add(found.history)
        soon = self._not_left_to_a_tick(found.jobs)
        later = [job for job in found.jobs if job not in soon]
        sent = self._hand_over(soon, again=again)
        there = (soon - set(sent)) | self._there_of(later)
        # Like whoever submits: the fence may have risen since.
        missed = self._not_left_to_a_tick(later)
        sent += self._hand_over(missed, again=True)
        for kind, jobs in ((NOW, sent), (THERE, there - set(sent)), (LATER, set(later) - missed - there)):
            for job in jobs:
                found.counts[job.id.queue][kind] += 1
        return found.counts

    def _there_of(self, jobs: Sequence[Job]) -> set[Job]:
        """Write the rows of jobs that have none; return the others."""
        written = [rows.job_row(job) for job in jobs]
        found = self._spread(self._table.add, written)
        return {job for job, row, its in zip(jobs, written, found, strict=True) if its is not row}

    def _sorted(self, part: Sequence[Row], bound_of: Callable[[Partition], str]) -> Sorted:
        """Sort the rows of a part that are not past their TTL, but of jobs that are to be handed over all."""
        now, found = self._clock.now(), Sorted()
        for row in part:
            pk, sk = rows.key(row)
            prefix, kind = rows.prefix_and_kind(sk)
            # A state of before is in the table of jobs. It was read with that of its partition.
            if is_progress((pk, sk)) or sk == rows.STATE or self._is_forgotten(row, kind):
                continue
            if sk.startswith("!") or kind != rows.JOB:
                found.beside += [row] if _is_kept(row, now) else []
                self._settled[pk] = prefix if kind in (rows.CANCELLED, rows.HANDLED) else self._settled.get(pk, "")
            else:
                self._sort_job(row, found, self._settled.get(pk) == prefix, bound_of, now)
        return found

    def _sort_job(
        self, row: Row, found: Sorted, is_settled: bool, bound_of: Callable[[Partition], str], now: datetime
    ) -> None:
        queue, _, _ = str(row["pk"]).partition("#")
        try:
            job = rows.read_job(row)
        except InvalidJob:
            found.history.append(row)
            found.counts[queue][UNREADABLE] += 1
            return
        is_before = str(row["sk"]) <= bound_of(job.id.partition)
        if not (is_before or is_settled):
            self._check_tick(job.id.partition)
            found.jobs.append(job)
            return
        found.history += [row] if _is_kept(row, now) else []
        found.counts[queue][BEFORE if is_before else SETTLED] += 1

    def _is_forgotten(self, row: Row, kind: str) -> bool:
        """Tell whether it is a note of the late path of a job that is wanted once more all the same."""
        return (
            self._from is not None and kind == rows.HANDLED and bool(row["dispatched"]) and str(row["sk"]) > self._from
        )

    def _bound_of(self, partition: Partition) -> str:
        """Return the sort key up to which all jobs of the backup count as handed over."""
        if self._from is not None:
            return self._from
        return cursor_in(self._backup, partition)

    def _check_tick(self, partition: Partition) -> None:
        if not self._has_tick(partition):
            raise InvalidJob(
                f"the backup has jobs for partition {partition}, which no tick reads here: they would wait for ever."
                " Add its queue to queues.yaml with as many partitions as it had, deploy, and give the command again"
            )

    def _begun(self, partition: Partition) -> str:
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
        if not lease.take():
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
            jobs = [job for job in waiting if isinstance(job, Job)]
            known = read_whole(self._backup, [rows.job_key(job.id) for job in jobs]).rows
            self._hand_over({job for job in jobs if rows.job_key(job.id) not in known}, again=True)
            after, more = str(page.rows[-1]["sk"]) if page.rows else after, page.more

    def _not_left_to_a_tick(self, jobs: Sequence[Job]) -> set[Job]:
        keys = {rows.state_key(job.id.partition) for job in jobs}
        states = {key: rows.read_state(row) for key, row in read_whole(self._table, keys, self._spread).rows.items()}
        return {job for job in jobs if instant.text(job.id.due) <= states[rows.state_key(job.id.partition)].fence}

    def _hand_over(self, jobs: set[Job], *, again: bool) -> list[Job]:
        """Send jobs to the inbound queue, unless the table tells that it is done; note it, then write their rows."""
        keys = [key for job in jobs for key in _told_by(job, again=again)]
        told = read_whole(self._table, keys, self._spread).rows
        wanted = [job for job in jobs if not any(key in told for key in _told_by(job, again=again))]
        wanted.sort(key=lambda job: (job.id.due, job.id.uid))
        list(self._spread(self._send, batches(wanted, size=lambda job: job.size + ATTRIBUTES_BYTES)))
        kept = [job for job in wanted if job.expires > self._clock.now()]
        self._add(rows.handled_row(job, dispatched=True) for job in kept)
        self._add(map(rows.job_row, kept))
        return wanted

    def _send(self, batch: Sequence[Job]) -> None:
        # Ingest decides on each anew: it asks for a cancel, and parks what is past its retention.
        refusals = self._inbound.send([Message.of(job, group=job.id.queue) for job in batch])
        if refusals:
            raise Unavailable(f"{len(refusals)} of {len(batch)} jobs were not sent: {refusals[0].reason}")

    def _add(self, written: Iterable[Row]) -> None:
        list(self._spread(self._table.add, written))


def periods_of_a_restore(lookahead: timedelta) -> Periods:
    """Return the periods of its leases, which are short: nothing is sent under them, or little."""
    lease = timedelta(seconds=30)
    return Periods(period=timedelta(seconds=60), lookahead=lookahead, lease=lease, longest_send=lease / 3)


def _told_by(job: Job, *, again: bool) -> list[Key]:
    """Return the keys of the rows by which a job needs no handing over; its own row may be of the try before."""
    return [rows.cancellation_key(job.id), rows.handled_key(job.id), *([] if again else [rows.job_key(job.id)])]


def _is_kept(row: Row, now: datetime) -> bool:
    return "ttl" not in row or rows.is_live(row, now=now)
