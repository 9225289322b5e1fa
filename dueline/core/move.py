"""Move: replace one job by another, so that exactly one of the two exists at any time.

One transaction cancels the old job and writes the new one's row, unless a tick may send the old one already. If the
job has a key, the key's row is changed with them. Where a tick will see the new row, that is all. Else an intent is
sent to the inbound queue before: after a crash, ingest carries it out, and it handles the new row like any other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.core import instant, rows
from dueline.core.job import JobId, Route, StoredJob
from dueline.core.message import KEY_CHANGE, Message
from dueline.core.ports import Clock, KeyChange, MoveOutcome, Queue, Table
from dueline.core.rows import MOVE_PENDING, MOVE_TARGET, Key, Row, move_row, moved_to
from dueline.errors import RETRYABLE, InvalidJob, QueueNotFound, Unavailable

Rows = Mapping[Key, Row]
# A job that is moved more often within its retention is an error, never a guess.
MOST_HOPS = 32
# By how much the clocks of two processes may differ.
_CLOCKS_DIFFER = timedelta(minutes=1)
# What a message says of the row of a key: the rest is as of any move.
_CHANGED = ("expected", "before", "call", "content", "calls")


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """The intent to replace the job `old` by `job`.

    `change` is what becomes of the row of the job's key, where the move is by its key: without that there is no move.
    A move by id takes the key along if that still names the old job.
    """

    job: StoredJob
    old: JobId
    change: KeyChange | None = None

    @classmethod
    def of(cls, message: Message, job: StoredJob, *, old: JobId) -> "Intent":
        """Return the intent that a message carries. Raises InvalidJob where what it does to a key cannot be read."""
        text = message.attributes.get(KEY_CHANGE)
        if text is None:
            return cls(job=job, old=old)
        try:
            change = {name: str(value) for name, value in json.loads(text).items() if name in _CHANGED}
            expected, before = change.pop("expected"), change.pop("before", "")
        except (AttributeError, KeyError, ValueError, RecursionError):
            raise InvalidJob(f"message attribute {KEY_CHANGE} is not what a move writes there") from None
        row = {**rows.moved_key_row(job), **change}
        return cls(job=job, old=old, change=KeyChange(expected=expected, before=before, row=row))

    def message(self) -> Message:
        """Return the message that carries it to ingest."""
        text = None
        if self.change is not None:
            values = {**self.change.row, "expected": self.change.expected, "before": self.change.before}
            text = json.dumps({name: values[name] for name in _CHANGED if name in values})
        return Message.of(self.job, group=self.job.id.queue, moves=self.old, key_change=text)

    def carry_out(self, *, table: Table, clock: Clock, is_whole: bool = False) -> bool:
        """Cancel the old job and write the new one's row, both or neither; return whether that was done.

        It is not done once the old job may be sent, or has a cancellation, even one by this very intent; nor, by key,
        if the key's row has changed. If `is_whole`, it is done only if a later tick will see the new job too,
        which is in the old one's partition. Raises Throttled or Unavailable.
        """
        now, before = clock.now(), self.old.due
        # Put first: until the transaction is answered, others may not see what it did.
        pending = [move_row(self.old, MOVE_PENDING, at=now)]
        if is_whole:
            pending.append(move_row(self.job.id, MOVE_TARGET, at=now))
            before = min(before, self.job.id.due)
        if table.write(pending):
            raise Unavailable(f"that job {self.old} is to be moved could not be written: try again")
        change = self.change
        if change is None and self.job.key is not None:
            change = KeyChange(expected=str(self.old), row=rows.moved_key_row(self.job))
        cancellation = rows.cancellation_row(self.old, at=clock.now(), moved_to=self.job.id)
        job, state, fence = rows.job_row(self.job), rows.state_key(self.old.partition), instant.text(before)
        outcome = table.move(cancellation, job, state=state, fence_below=fence, change=change)
        if outcome is MoveOutcome.KEY_CHANGED and self._goes_without_key(clock.now()):
            outcome = table.move(cancellation, job, state=state, fence_below=fence, change=None)
        return outcome is MoveOutcome.DONE

    def _goes_without_key(self, now: datetime) -> bool:
        """Return whether the job may be moved though its key's row does not name it.

        Where a producer wrote no such row; not past the job's retention, for then another may have the key.
        """
        retention = self.job.expires - self.job.id.due
        return self.change is None and now < self.old.due + retention - _CLOCKS_DIFFER


def settle(intent: Intent, *, table: Table, clock: Clock) -> bool:
    """Carry out an intent unless that was done before; return whether its job replaced the old one.

    The answer is final: an intent that failed never succeeds later. After so long that it cannot be known any more, a
    job past its own retention counts as having replaced the old one: it will be parked. Raises Throttled or
    Unavailable.
    """
    cancelled = rows.cancellation_key(intent.old)
    there = table.read([cancelled, rows.job_key(intent.job.id)]).whole(f"the rows of job {intent.old}")
    cancellation = there.get(cancelled)
    if cancellation is None and rows.is_cancellation_kept(intent.old, now=clock.now()):
        if intent.carry_out(table=table, clock=clock):
            return True
        cancellation = table.read_barrier(cancelled)
    moved = moved_to(cancellation) if cancellation else None
    if moved is None:
        return _may_have_been_moved(intent, there, now=clock.now())
    is_carried_out = moved == intent.job.id
    if is_carried_out and rows.job_key(intent.job.id) not in there and table.write([rows.job_row(intent.job)]):
        # DynamoDB shows all rows of a transaction once that has succeeded; before, the cancellation may be there and
        # this row not yet, nor in a query of the tick that comes after the fence is read.
        raise Unavailable(f"the row of job {intent.job.id} could not be written: try again")
    return is_carried_out


def _may_have_been_moved(intent: Intent, there: Rows, *, now: datetime) -> bool:
    """Return what can still be known of a job that no cancellation moves, and of which no move can succeed any more.

    A caller's cancellation is proof only as long as that of a move would be kept: it may have taken its place since.
    The new job's row proves nothing for as long: anyone who knows the id may have submitted it.
    """
    is_known = rows.is_cancellation_kept(intent.old, now=now)
    return not is_known and (rows.job_key(intent.job.id) in there or now >= intent.job.expires)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mover:
    """Moves jobs. `inbound` takes intents to ingest."""

    table: Table
    inbound: Queue
    clock: Clock

    def run(self, intent: Intent, *, fence: str) -> bool:
        """Carry an intent out; return whether its job has replaced the old one, by this or by ingest.

        If it has not, it never will: the old job has left, has a cancellation, or its key's row has changed. `fence` is
        that of its partition, as it was read. Raises InvalidJob, Throttled or Unavailable.
        """
        with naming(str(intent.job.id)):
            is_whole = fence < instant.text(intent.job.id.due)
            if not is_whole:
                self._announce(intent)
            is_done = intent.carry_out(table=self.table, clock=self.clock, is_whole=is_whole)
            return is_done or self._is_done(intent)

    def _is_done(self, intent: Intent) -> bool:
        """Return whether an attempt whose answer was lost, or ingest, had moved the job.

        Once cancellations may have been collected, that none is there says nothing.
        """
        cancellation = self.table.read_barrier(rows.cancellation_key(intent.old))
        if cancellation is None and not rows.is_cancellation_kept(intent.old, now=self.clock.now()):
            raise Unavailable(f"whether job {intent.old} was moved is not known any more")
        return cancellation is not None and moved_to(cancellation) == intent.job.id

    def _announce(self, intent: Intent) -> None:
        """Send an intent to the inbound queue, before it is carried out: ingest will not leave it half done."""
        try:
            refusals = self.inbound.send([intent.message()])
        except QueueNotFound as error:
            raise Unavailable(str(error)) from None
        for refusal in refusals:
            raise InvalidJob(refusal.reason) if refusal.final else Unavailable(refusal.reason)


def read_whether_left(id: JobId, keys: Sequence[Key] = (), *, table: Table) -> Rows:
    """Read a job's cancellation, the state of its partition, and its other rows of these keys.

    One read of several rows is not of one instant: a job that was moved may look as if it had left, when its fence
    rose in mid-read, or when the move is not over. A cancellation read by a barrier decides.
    """
    cancelled = rows.cancellation_key(id)
    existing = table.read([cancelled, rows.state_key(id.partition), *keys]).whole(f"the rows of job {id}")
    if cancelled not in existing and id.route is Route.TABLE and has_left(id, existing):
        cancellation = table.read_barrier(cancelled)
        return existing if cancellation is None else {**existing, cancelled: cancellation}
    return existing


def has_left(id: JobId, existing: Rows) -> bool:
    """Return whether a job is or may be on its way to its queue."""
    fence = rows.read_state(existing.get(rows.state_key(id.partition))).fence
    is_handled = rows.handled_key(id) in existing or rows.parked_key(id) in existing
    return id.route is Route.DIRECT or is_handled or fence >= instant.text(id.due)


def too_many_hops(id: JobId) -> Unavailable:
    return Unavailable(f"job {id} was moved over {MOST_HOPS} times: use its key, or a later id of it")


@contextmanager
def naming(job_id: str) -> Iterator[None]:
    """Put the id of the job that may be scheduled all the same into an error, for the caller to look up or cancel."""
    try:
        yield
    except RETRYABLE as fault:
        fault.job_id = job_id
        raise
