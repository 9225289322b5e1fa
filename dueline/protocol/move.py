"""Move: replace one job by another, so that exactly one of the two exists at any time.

One transaction cancels the old job and writes the new one's row, unless a tick may send the old one already. Where a
tick will see the new row, that is all. Else an intent is sent to the inbound queue before: after a crash, ingest
carries it out, and it handles the new row like any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from dueline.errors import RETRYABLE, RunOfSchedule, Unavailable
from dueline.model import instant, rows
from dueline.model.job import Job, JobId
from dueline.model.move_rows import asked_row, awaited_row, moved_to
from dueline.model.rows import Key, Row
from dueline.ports import Clock, Spread, Table
from dueline.protocol.dispatch import OUT_OF_TIME


def check_movable(job: Job) -> None:
    """Raise RunOfSchedule for a job that a schedule made: moved, a pause would not end it, nor a change replace it."""
    if job.schedule is not None:
        run = f"job {job.id} is a run of schedule {job.id.queue}/{job.schedule}"
        raise RunOfSchedule(f"{run}: it cannot be rescheduled; cancel it, or run the schedule now")


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """The intent to replace the job `old` by `job`."""

    job: Job
    old: JobId

    def carry_out(self, *, table: Table, clock: Clock) -> bool:
        """Cancel the old job and write the new one's row, both or neither; return whether that was done.

        It is not done once the old job may be sent, or has a cancellation, even one by this very intent. Raises
        Throttled or Unavailable.
        """
        return self._carry_out([asked_row(self.old, at=clock.now())], before=self.old.due, table=table, clock=clock)

    def carry_out_whole(self, *, table: Table, clock: Clock) -> bool:
        """Carry an intent out only if a later tick will see the new job too, which is in the old one's partition."""
        now = clock.now()
        asks = [asked_row(self.old, at=now), awaited_row(self.job.id, at=now)]
        return self._carry_out(asks, before=min(self.old.due, self.job.id.due), table=table, clock=clock)

    def _carry_out(self, asks: Sequence[Row], *, before: datetime, table: Table, clock: Clock) -> bool:
        """Put first what tells others to ask: until the transaction is answered, they may not see what it did."""
        if table.write(asks):
            raise Unavailable(f"that job {self.old} is to be moved could not be written: try again")
        cancellation = rows.cancellation_row(self.old, at=clock.now(), moved_to=self.job.id)
        state = rows.state_key(self.old.partition)
        return table.move(cancellation, rows.job_row(self.job), state=state, fence_below=instant.text(before))


@dataclass(kw_only=True, slots=True)
class Settled:
    """The jobs of intents: those that replaced the old one, those that never will, and the unsettled, with why."""

    moved: set[Job] = field(default_factory=set)
    dropped: set[Job] = field(default_factory=set)
    unclear: dict[Job, str] = field(default_factory=dict)


def settle_all(intents: Sequence[Intent], *, table: Table, clock: Clock, spread: Spread, until: float) -> Settled:
    """Settle each intent separately; begin none after `until` (monotonic)."""
    settled = Settled()
    settle_one = partial(_settle_or_reason, table=table, clock=clock, until=until)
    for intent, result in zip(intents, spread(settle_one, intents), strict=True):
        if isinstance(result, str):
            settled.unclear[intent.job] = result
        else:
            (settled.moved if result else settled.dropped).add(intent.job)
    return settled


def settle(intent: Intent, *, table: Table, clock: Clock) -> bool:
    """Carry out an intent unless that was done before; return whether its job replaced the old one.

    The answer is final: an intent that failed never succeeds later. After so long that it cannot be known any more, a
    job past its own retention counts as having replaced the old one: it will be parked. Raises Throttled or
    Unavailable.
    """
    there, cancelled = _read(intent, table), rows.cancellation_key(intent.old)
    cancellation = there.get(cancelled)
    if cancellation is None and rows.is_cancellation_kept(intent.old, now=clock.now()):
        if intent.carry_out(table=table, clock=clock):
            return True
        cancellation = table.ask_for(cancelled)
    moved = moved_to(cancellation) if cancellation else None
    if moved is None:
        return _may_have_been_moved(intent, there, now=clock.now())
    is_carried_out = moved == intent.job.id
    if is_carried_out and rows.job_key(intent.job.id) not in there:
        _write(intent.job, table)
    return is_carried_out


def _settle_or_reason(intent: Intent, *, table: Table, clock: Clock, until: float) -> bool | str:
    """Settle an intent, or return why that could not be done now."""
    if clock.monotonic() >= until:
        return OUT_OF_TIME
    try:
        return settle(intent, table=table, clock=clock)
    except RETRYABLE as fault:
        return str(fault)


def _read(intent: Intent, table: Table) -> Mapping[Key, Row]:
    reading = table.read([rows.cancellation_key(intent.old), rows.job_key(intent.job.id)])
    if reading.unread:
        raise Unavailable(f"the rows of job {intent.old} could not be read: try again")
    return reading.rows


def _may_have_been_moved(intent: Intent, there: Mapping[Key, Row], *, now: datetime) -> bool:
    """Tell what is left to be known of a job that no cancellation moves, and of which no move can succeed any more.

    A cancellation by a caller tells only as long as that of a move would be kept: it may have taken its place since.
    The new job's row tells nothing as long as a cancellation would: whoever knows the id may have submitted it.
    """
    is_known = rows.is_cancellation_kept(intent.old, now=now)
    return not is_known and (rows.job_key(intent.job.id) in there or now >= intent.job.expires)


def _write(job: Job, table: Table) -> None:
    """Write the row of a job that was moved, as its move does.

    DynamoDB shows all rows of a transaction once that has succeeded; before, the cancellation may be there and this row
    not yet, nor in a query of the tick that comes after the fence is read.
    """
    if table.write([rows.job_row(job)]):
        raise Unavailable(f"the row of job {job.id} could not be written: try again")
