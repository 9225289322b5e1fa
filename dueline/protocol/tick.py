"""Tick: one pass over a partition, which sends every job that is due within the lookahead to its queue.

Take the lease and raise the fence; read from the cursor to the fence; send, earliest due first; move the cursor
behind what is finished. No job is lost because the fence never falls, the reads are consistent, and the cursor
stops before the first unfinished job.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dueline.errors import RETRYABLE, QueueNotFound, Unavailable
from dueline.model import rows
from dueline.model.job import Job, Partition
from dueline.model.rows import Key, Row
from dueline.ports import Clock, Table
from dueline.protocol.dispatch import OUT_OF_TIME, Dispatcher, Parked
from dueline.protocol.entries import Entries, Entry, Unreadable, asked_for
from dueline.protocol.lease import Lease

WAVE_JOBS = 100
CHECKPOINT_JOBS = 300


@dataclass(kw_only=True, slots=True)
class Ticked:
    """What a tick did.

    `held`: it had the lease to its end. `finished`: all jobs due up to the fence were handed over. `reached` is the due
    time of the oldest job that it had to leave, or else of the last one that it handed over. `fault` is what stopped
    it.
    """

    held: bool = False
    finished: bool = False
    dispatched: int = 0
    parked: list[Parked] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    reached: datetime | None = None
    fault: str = ""

    def lateness(self, now: datetime) -> float | None:
        """Return how many seconds past due the oldest job not handed over is at most; None if that is unknown."""
        if self.finished:
            return 0.0
        return max(0.0, (now - self.reached).total_seconds()) if self.reached else None


class Tick:
    """One pass over a partition under one lease; run it once."""

    def __init__(
        self, partition: Partition, *, lease: Lease, table: Table, dispatcher: Dispatcher, clock: Clock
    ) -> None:
        self._partition = partition
        self._lease = lease
        self._table = table
        self._dispatcher = dispatcher
        self._clock = clock
        self._done = Ticked()
        self._cursor = rows.FIRST
        self._unsaved = 0
        self._seen = False
        self._entries = Entries()

    def run(self) -> Ticked:
        """Hand over what is due up to the fence, as far as time allows.

        While another tick has the partition, return at once: `held` is False, and `reached` is how far that one is.
        Raises Throttled or Unavailable when the lease could not be asked for. A later fault stops the tick, and the
        next one goes on from the cursor.
        """
        if not self._lease.take():
            self._done.reached = rows.due_at(self._lease.cursor)
            return self._done
        self._done.held = True
        self._cursor = self._lease.cursor
        for step in (self._read_on, self._release):
            try:
                step()
            except RETRYABLE as fault:
                self._done.fault = str(fault)
        return self._done

    def _read_on(self) -> None:
        after, more, end = self._cursor, True, ""
        while more or end < rows.end_of(self._lease.fence):
            end = rows.end_of(self._lease.fence)
            page = self._table.page(self._partition, after=after, until=end)
            entries = self._entries.of(page.rows, more=page.more)
            self._seen |= bool(page.rows)
            if not (self._hand_over_all(entries) and self._keep_lease()):
                return
            last = str(page.rows[-1]["sk"]) if page.rows else after
            after, more = last if page.more else end, page.more
        self._cursor, self._done.finished = end, True

    def _hand_over_all(self, entries: Sequence[Entry]) -> bool:
        """Hand over a page in waves; return whether the tick may go on."""
        waves = (entries[start : start + WAVE_JOBS] for start in range(0, len(entries), WAVE_JOBS))
        return all(self._hand_over(wave) and self._keep_lease() for wave in waves)

    def _hand_over(self, wave: Sequence[Entry]) -> bool:
        wave, unknown = self._looked_up(wave)
        read = {entry.key: entry.job for entry in wave}
        known = [read[entry.key] for entry in wave if entry.key not in unknown]
        jobs = [each for each in known if isinstance(each, Job)]
        handed = self._dispatcher.hand_over(jobs, until=self._lease.stop_at)
        self._done.dispatched += len(handed.dispatched)
        self._done.parked += handed.parked
        unfinished = {rows.job_key(job.id)[1] for job in handed.unfinished}
        unfinished |= self._park_unreadable(each for each in known if isinstance(each, Unreadable)) | unknown
        self._done.fault = handed.fault or self._done.fault
        for entry in wave:
            if isinstance(job := read[entry.key], Job):
                self._done.reached = job.id.due
            if entry.key in unfinished:
                return False
            self._cursor = entry.key
        self._unsaved += len(wave)
        return True

    def _looked_up(self, wave: Sequence[Entry]) -> tuple[list[Entry], set[str]]:
        """Return a wave as moves left it, and the keys of those of which that is not known: the tick stops there."""
        known, unknown = asked_for(wave, pk=str(self._partition), ask_for=self._ask_for, spread=self._dispatcher.spread)
        self._done.fault = next(iter(unknown.values()), self._done.fault)
        return [known.get(entry.key, entry) for entry in wave], set(unknown)

    def _ask_for(self, key: Key) -> Row | None:
        if self._clock.monotonic() >= self._lease.stop_at:
            raise Unavailable(OUT_OF_TIME)
        return self._table.ask_for(key)

    def _park_unreadable(self, unreadable: Iterable[Unreadable]) -> set[str]:
        unparked = set()
        for entry in unreadable:
            if self._park_row(entry):
                self._done.unreadable.append(entry)
            else:
                unparked.add(str(entry.row["sk"]))
        return unparked

    def _park_row(self, entry: Unreadable) -> bool:
        try:
            return self._dispatcher.parking.park_row(entry.row, reason=entry.reason)
        except (QueueNotFound, *RETRYABLE) as fault:
            self._done.fault = f"not parked: {fault}"
            return False

    def _keep_lease(self) -> bool:
        if self._unsaved >= CHECKPOINT_JOBS or self._clock.monotonic() >= self._lease.renew_at:
            self._unsaved = 0
            self._done.held = self._lease.checkpoint(self._cursor)
        return self._done.held and self._clock.monotonic() < self._lease.stop_at

    def _release(self) -> None:
        if self._done.held and (self._seen or self._lease.outlasts_the_period):
            self._done.held = self._lease.release(self._cursor)
