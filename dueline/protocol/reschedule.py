"""Reschedule: replace a job by a new one that is due at another time, unless it was sent to its queue already."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn
from uuid import UUID, uuid5

from dueline.errors import RETRYABLE, AlreadyFinished, InvalidJob, JobNotFound, NotYet, QueueNotFound, Unavailable
from dueline.model import instant, rows
from dueline.model.job import Job, JobId, Route
from dueline.model.message import Message
from dueline.model.move_rows import moved_to
from dueline.model.pointer import Pointer
from dueline.model.queue_settings import QueueSettings
from dueline.model.request import Request, due_of
from dueline.model.rows import Key, Row
from dueline.ports import Clock, Payloads, Queue, Reading, Table
from dueline.protocol import keys
from dueline.protocol.move import Intent, check_movable
from dueline.protocol.offload import Offload
from dueline.protocol.partitions import check_partition

Rows = Mapping[Key, Row]


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
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
    ) -> Moved:
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
        due = due_of(Request(payload=None, at=at, delay=delay), now=now)
        uid = None if key is None else _uid_of(id, keys.checked(key))
        found = self._looked_up(id)
        asked = due if at is None else min(due, instant.round_up(at))
        if (moved := self._moved_before(id, found, earliest=asked, latest=due, uid=uid)) is not None:
            return Moved(id=moved, was_before=True)
        intent = Intent(job=self._successor(self._movable(id, found, now=now), due=due, uid=uid), old=id)
        with naming(str(intent.job.id)):
            is_ours = self._moves_whole(intent, found) or self._moves_as_announced(intent)
        return Moved(id=intent.job.id, was_before=not is_ours)

    def _moves_whole(self, intent: Intent, found: Rows) -> bool:
        """Move a job whose successor a later tick will see, so that nothing is left to do; return whether it did."""
        fence = rows.read_state(found.get(rows.state_key(intent.old.partition))).fence
        if fence >= instant.text(intent.job.id.due):
            return False
        return intent.carry_out_whole(table=self._table, clock=self._clock) or self._is_moved(intent)

    def _is_moved(self, intent: Intent) -> bool:
        """Return whether an attempt whose answer was lost had moved the job; refuse if its cancellation is another's.

        A cancellation that is there stays. That none is seen yet says nothing.
        """
        key = rows.cancellation_key(intent.old)
        cancellation = self._read(intent.old, key).get(key)
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
        rose in mid-read, or when the move is not over. The cancellation that is asked for after the fence tells.
        """
        of_job = [rows.cancellation_key(id), rows.parked_key(id), rows.handled_key(id), rows.job_key(id)]
        found = self._read(id, *of_job, rows.state_key(id.partition))
        if _has_left(id, found) and id.route is Route.TABLE and of_job[0] not in found:
            cancellation = self._table.ask_for(of_job[0])
            return found if cancellation is None else {**found, of_job[0]: cancellation}
        return found

    def _read(self, id: JobId, *keys: Key) -> Rows:
        reading = self._table.read(keys)
        if reading.unread:
            raise Unavailable(f"the rows of job {id} could not be read: try again")
        return reading.rows

    def _moved_before(
        self, id: JobId, found: Rows, *, earliest: datetime, latest: datetime, uid: str | None
    ) -> JobId | None:
        """Return the job that an earlier call, whose answer may be lost, put in this one's place for the same request.

        That has the same key, or due time. What is asked to be due in the past became due at the call's own present.
        """
        cancellation = found.get(rows.cancellation_key(id))
        moved = moved_to(cancellation) if cancellation else None
        if cancellation and (moved is None or not (moved.uid == uid or earliest <= moved.due <= latest)):
            _refuse(id, cancellation)
        return moved

    def _movable(self, id: JobId, found: Rows, *, now: datetime) -> Job:
        """Return the job of an id, if it waits in the table and is no run of a schedule."""
        if not found:
            check_partition(id, Reading(), queue=self._queue)
        row = found.get(rows.job_key(id))
        is_over = not rows.is_live(row, now=now) if row else now >= id.due + self._queue.retention
        if is_over:
            raise JobNotFound(f"nothing is known of job {id}: it is past its retention")
        if _has_left(id, found):
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
        cancellation = self._table.ask_for(rows.cancellation_key(intent.old))
        if cancellation is None:
            self._refuse_as_left(intent.old)
        _check_whose(cancellation, intent)

    def _refuse_as_left(self, id: JobId) -> NoReturn:
        """Raise what tells that a job has left for its queue, of which no cancellation was read just now.

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


def _has_left(id: JobId, found: Rows) -> bool:
    """Tell whether a job is or may be on its way to its queue."""
    fence = rows.read_state(found.get(rows.state_key(id.partition))).fence
    is_handled = rows.handled_key(id) in found or rows.parked_key(id) in found
    return id.route is Route.DIRECT or is_handled or fence >= instant.text(id.due)


def _refuse(id: JobId, cancellation: Row | None = None) -> NoReturn:
    """Raise what tells that a job can be moved no more: it has left for its queue, unless its cancellation says why.

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
