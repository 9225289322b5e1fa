"""Move: replace one job by another, so that exactly one of the two exists at any time.

One transaction cancels the old job and writes the new one's row, unless a tick may send the old one already. Where a
tick will see the new row, that is all. Else an intent is sent to the inbound queue before: after a crash, ingest
carries it out, and it handles the new row like any other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn
from uuid import UUID, uuid5

from dueline import errors
from dueline.core import instant, rows
from dueline.core.job import Job, JobId, Route, checked_key
from dueline.core.message import Message
from dueline.core.partitions import check_partition
from dueline.core.payloads import Offload
from dueline.core.ports import BatchRead, Clock, Payloads, Pointer, Queue, Table
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import Request
from dueline.core.rows import MOVE_PENDING, MOVE_TARGET, Key, Row, move_row, moved_to
from dueline.errors import RETRYABLE, AlreadyFinished, InvalidJob, JobNotFound, NotYet, QueueNotFound, Unavailable

Rows = Mapping[Key, Row]


def check_movable(job: Job) -> None:
    """Raise RunOfSchedule for a job that a schedule made: moved, a pause would not end it, nor a change replace it."""
    if job.schedule is not None:
        run = f"job {job.id} is a run of schedule {job.id.queue}/{job.schedule}"
        raise errors.RunOfSchedule(f"{run}: it cannot be rescheduled; cancel it, or run the schedule now")


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
        pending = [move_row(self.old, MOVE_PENDING, at=clock.now())]
        return self._carry_out(pending, before=self.old.due, table=table, clock=clock)

    def carry_out_whole(self, *, table: Table, clock: Clock) -> bool:
        """Carry an intent out only if a later tick will see the new job too, which is in the old one's partition."""
        now = clock.now()
        pending = [move_row(self.old, MOVE_PENDING, at=now), move_row(self.job.id, MOVE_TARGET, at=now)]
        return self._carry_out(pending, before=min(self.old.due, self.job.id.due), table=table, clock=clock)

    def _carry_out(self, pending: Sequence[Row], *, before: datetime, table: Table, clock: Clock) -> bool:
        """Put the rows of the move first: until the transaction is answered, others may not see what it did."""
        if table.write(pending):
            raise Unavailable(f"that job {self.old} is to be moved could not be written: try again")
        cancellation = rows.cancellation_row(self.old, at=clock.now(), moved_to=self.job.id)
        state = rows.state_key(self.old.partition)
        return table.move(cancellation, rows.job_row(self.job), state=state, fence_below=instant.text(before))


def settle(intent: Intent, *, table: Table, clock: Clock) -> bool:
    """Carry out an intent unless that was done before; return whether its job replaced the old one.

    The answer is final: an intent that failed never succeeds later. After so long that it cannot be known any more, a
    job past its own retention counts as having replaced the old one: it will be parked. Raises Throttled or
    Unavailable.
    """
    cancelled = rows.cancellation_key(intent.old)
    there = _read(intent.old, cancelled, rows.job_key(intent.job.id), table=table)
    cancellation = there.get(cancelled)
    if cancellation is None and rows.is_cancellation_kept(intent.old, now=clock.now()):
        if intent.carry_out(table=table, clock=clock):
            return True
        cancellation = table.read_barrier(cancelled)
    moved = moved_to(cancellation) if cancellation else None
    if moved is None:
        return _may_have_been_moved(intent, there, now=clock.now())
    is_carried_out = moved == intent.job.id
    if is_carried_out and rows.job_key(intent.job.id) not in there:
        _write(intent.job, table)
    return is_carried_out


def _read(id: JobId, *keys: Key, table: Table) -> Rows:
    reading = table.read(keys)
    if reading.unread:
        raise Unavailable(f"the rows of job {id} could not be read: try again")
    return reading.rows


def _may_have_been_moved(intent: Intent, there: Rows, *, now: datetime) -> bool:
    """Return what can still be known of a job that no cancellation moves, and of which no move can succeed any more.

    A caller's cancellation is proof only as long as that of a move would be kept: it may have taken its place since.
    The new job's row proves nothing for as long: anyone who knows the id may have submitted it.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class RescheduleResult:
    """The job that replaced another. `was_before`: an earlier call, or ingest, had replaced it already."""

    id: JobId
    was_before: bool


class Reschedule:
    """Reschedules jobs of one queue.

    `inbound` takes intents to ingest, `payloads` keeps what is too large for rows, `new_uid` returns a random UUID.
    """

    def __init__(
        self,
        queue: QueueSettings,
        *,
        inbound: Queue,
        table: Table,
        payloads: Payloads,
        clock: Clock,
        new_uid: Callable[[], str],
    ) -> None:
        self._queue = queue
        self._inbound = inbound
        self._table = table
        self._offload = Offload(queue.name, payloads=payloads, clock=clock)
        self._clock = clock
        self._new_uid = new_uid

    def run(
        self, id: JobId, *, at: datetime | None = None, delay: float | None = None, key: str | None = None
    ) -> RescheduleResult:
        """Move a job to `at`, or to `delay` seconds from now; return the new job that replaces it.

        The job with the old id never reaches its queue: that is a promise. A repeat with the same due time, or under
        the same `key`, returns the same id: a delay counts from the first call under a key. Raises InvalidJob,
        JobNotFound, RunOfSchedule, or AlreadyFinished when the job was sent to its queue, cancelled or moved to another
        time: then there is no new job. After Throttled or Unavailable either the old job exists or the new one; the
        error has the new id if there may be one.
        """
        if at is None and delay is None:
            raise InvalidJob("at and delay are both missing: give one of them")
        now = self._clock.now()
        due = Request(at=at, delay=delay).due(now=now)
        uid = None if key is None else _uid_of(id, checked_key(key))
        existing = self._looked_up(id)
        earliest = due if at is None else min(due, instant.round_up(at))
        if (moved := self._moved_before(id, existing, earliest=earliest, latest=due, uid=uid)) is not None:
            return RescheduleResult(id=moved, was_before=True)
        intent = Intent(job=self._successor(self._movable(id, existing, now=now), due=due, uid=uid), old=id)
        with naming(str(intent.job.id)):
            is_ours = self._moves_whole(intent, existing) or self._moves_as_announced(intent)
        return RescheduleResult(id=intent.job.id, was_before=not is_ours)

    def _moves_whole(self, intent: Intent, existing: Rows) -> bool:
        """Move a job whose successor a later tick will see, so that nothing is left to do; return whether it did."""
        fence = rows.read_state(existing.get(rows.state_key(intent.old.partition))).fence
        if fence >= instant.text(intent.job.id.due):
            return False
        return intent.carry_out_whole(table=self._table, clock=self._clock) or self._is_moved(intent)

    def _is_moved(self, intent: Intent) -> bool:
        """Return whether an attempt whose answer was lost had moved the job; refuse if its cancellation is another's.

        A cancellation that is there stays. That none is seen yet says nothing.
        """
        key = rows.cancellation_key(intent.old)
        cancellation = _read(intent.old, key, table=self._table).get(key)
        if cancellation is not None:
            _check_whose(cancellation, intent)
        return cancellation is not None

    def _moves_as_announced(self, intent: Intent) -> bool:
        """Move a job whose successor no tick may see; return whether this did, and not ingest."""
        self._announce(intent)
        is_ours = intent.carry_out(table=self._table, clock=self._clock)
        if not is_ours:
            self._check_who_was_quicker(intent)
        return is_ours

    def _looked_up(self, id: JobId) -> Rows:
        """Read what there is of a job.

        One read of several rows is not of one instant: a job that was moved may look as if it had left, when its fence
        rose in mid-read, or when the move is not over. A cancellation read by a barrier decides.
        """
        of_job = [rows.cancellation_key(id), rows.parked_key(id), rows.handled_key(id), rows.job_key(id)]
        existing = _read(id, *of_job, rows.state_key(id.partition), table=self._table)
        if _has_left(id, existing) and id.route is Route.TABLE and of_job[0] not in existing:
            cancellation = self._table.read_barrier(of_job[0])
            return existing if cancellation is None else {**existing, of_job[0]: cancellation}
        return existing

    def _moved_before(
        self, id: JobId, existing: Rows, *, earliest: datetime, latest: datetime, uid: str | None
    ) -> JobId | None:
        """Return the job that an earlier call, whose answer may be lost, put in this one's place for the same request.

        That has the same key, or due time. A due time in the past became the call's own present.
        """
        cancellation = existing.get(rows.cancellation_key(id))
        moved = moved_to(cancellation) if cancellation else None
        if cancellation and (moved is None or not (moved.uid == uid or earliest <= moved.due <= latest)):
            _refuse(id, cancellation)
        return moved

    def _movable(self, id: JobId, existing: Rows, *, now: datetime) -> Job:
        """Return the job of an id, if it waits in the table and is no run of a schedule."""
        if not existing:
            check_partition(id, BatchRead(), queue=self._queue)
        row = existing.get(rows.job_key(id))
        is_over = not rows.is_live(row, now=now) if row else now >= id.due + self._queue.retention
        if is_over:
            raise JobNotFound(f"nothing is known of job {id}: it is past its retention")
        if _has_left(id, existing):
            self._refuse_as_left(id)
        if row is None:
            on_its_way = "it may still be on its way there, then try again in a moment"
            raise NotYet(f"job {id} is not in the table: {on_its_way}; or no such job was ever scheduled")
        job = rows.read_job(row)
        check_movable(job)
        return job

    def _successor(self, job: Job, *, due: datetime, uid: str | None) -> Job:
        # In the same partition, so that one fence speaks for both.
        id = replace(job.id, due=due, uid=uid or self._new_uid())
        successor = replace(job, id=id, expires=due + self._queue.retention)
        return successor if job.offloaded_bytes is None else self._with_payload(successor)

    def _with_payload(self, job: Job) -> Job:
        """Return a job with a copy of the payload that it points to, which lasts as long as itself."""
        try:
            source = Pointer.parse(job.payload)
        except ValueError:
            return job  # who sends to the inbound queue may point in a way of their own
        return self._offload.move(job, source=source)

    def _announce(self, intent: Intent) -> None:
        """Send an intent to the inbound queue, before it is carried out: ingest will not leave it half done."""
        message = Message.of(intent.job, group=self._queue.name, moves=intent.old)
        try:
            refusals = self._inbound.send([message])
        except QueueNotFound as error:
            raise Unavailable(str(error)) from None
        for refusal in refusals:
            raise InvalidJob(refusal.reason) if refusal.final else Unavailable(refusal.reason)

    def _check_who_was_quicker(self, intent: Intent) -> None:
        """Return if ingest carried the intent out; raise AlreadyFinished if it came to nothing."""
        cancellation = self._table.read_barrier(rows.cancellation_key(intent.old))
        if cancellation is None:
            self._refuse_as_left(intent.old)
        _check_whose(cancellation, intent)

    def _refuse_as_left(self, id: JobId) -> NoReturn:
        """Raise the error that a job has left for its queue, of which no cancellation was read just now.

        Once cancellations may have been collected, that none is there says nothing.
        """
        if not rows.is_cancellation_kept(id, now=self._clock.now()):
            raise Unavailable(f"whether job {id} was sent or cancelled is not known any more")
        _refuse(id)


def _check_whose(cancellation: Row, intent: Intent) -> None:
    """Return if a cancellation is by this intent; raise AlreadyFinished if the job was cancelled or moved otherwise."""
    moved = moved_to(cancellation)
    if moved and moved != intent.job.id and moved.uid == intent.job.id.uid:
        raise NotYet(f"an earlier call under the same key moved job {intent.old}: try again")
    if moved != intent.job.id:
        _refuse(intent.old, cancellation)


def _uid_of(id: JobId, key: str) -> str:
    """Return the one UUID of whatever takes a job's place under a key, so that a repeat knows it by that."""
    return str(uuid5(UUID(id.uid), key))


def _has_left(id: JobId, existing: Rows) -> bool:
    """Return whether a job is or may be on its way to its queue."""
    fence = rows.read_state(existing.get(rows.state_key(id.partition))).fence
    is_handled = rows.handled_key(id) in existing or rows.parked_key(id) in existing
    return id.route is Route.DIRECT or is_handled or fence >= instant.text(id.due)


def _refuse(id: JobId, cancellation: Row | None = None) -> NoReturn:
    """Raise the error that a job can be moved no more: it has left for its queue, unless its cancellation says why.

    A direct job has left, whatever a cancellation says.
    """
    reason = cancellation if id.route is Route.TABLE else None
    moved = moved_to(reason) if reason else None
    became = f"was moved to {moved}" if moved else "was cancelled" if reason else "has left for its queue"
    error = AlreadyFinished(f"job {id} {became}: it can be moved no more")
    error.job_id = str(moved) if moved else None
    raise error


@contextmanager
def naming(job_id: str) -> Iterator[None]:
    """Put the id of the job that may be scheduled all the same into an error, for the caller to look up or cancel."""
    try:
        yield
    except RETRYABLE as fault:
        fault.job_id = job_id
        raise
