"""Reschedule: move a job to another time, by any of its ids or by its key."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn
from uuid import UUID, uuid5

from dueline.core import instant, keys, rows
from dueline.core.job import JobId, Route, StoredJob
from dueline.core.move import MOST_HOPS, Intent, Mover, Rows, has_left, read_whether_left, too_many_hops
from dueline.core.partitions import check_partition
from dueline.core.payloads import Offload
from dueline.core.ports import BatchRead, Payloads, Pointer
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import Request
from dueline.core.rows import Row, moved_to
from dueline.errors import AlreadyFinished, InvalidJob, JobNotFound, KeyReused, NotYet, RunOfSchedule, Unavailable

# How often a move begins again because another call has moved the same job meanwhile.
_ATTEMPTS = 5


def check_movable(job: StoredJob) -> None:
    """Raise RunOfSchedule for a job that a schedule made: moved, a pause would not end it, nor a change replace it."""
    if job.schedule is not None:
        run = f"job {job.id} is a run of schedule {job.id.queue}/{job.schedule}"
        raise RunOfSchedule(f"{run}: it cannot be rescheduled; cancel it, or run the schedule now")


@dataclass(frozen=True, kw_only=True, slots=True)
class RescheduleResult:
    """A job as it is after a reschedule, and the job that was named; `was_before`: it was there already."""

    id: JobId
    moved_from: JobId
    was_before: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _NewTime:
    """When a job is to be due, from `earliest` to `due`: a time in the past became the present of an earlier call."""

    due: datetime
    earliest: datetime
    call: str | None

    def uid_after(self, id: JobId, *, new_uid: Callable[[], str]) -> str:
        """Return the UUID of what this call puts in a job's place, by which a repeat knows it."""
        return new_uid() if self.call is None else str(uuid5(UUID(id.uid), self.call))


class Reschedule:
    """Reschedules jobs of one queue. `payloads` keeps what is too large for rows, `new_uid` returns a random UUID."""

    def __init__(self, queue: QueueSettings, *, mover: Mover, payloads: Payloads, new_uid: Callable[[], str]) -> None:
        self._queue, self._mover, self._new_uid = queue, mover, new_uid
        self._table, self._clock = mover.table, mover.clock
        self._offload = Offload(queue.name, payloads=payloads, clock=mover.clock)

    def run(
        self,
        id: JobId | None = None,
        *,
        key: str | None = None,
        at: datetime | None = None,
        delay: float | None = None,
        call: str | None = None,
    ) -> RescheduleResult:
        """Move the job of an id, or of a key, to `at`, or to `delay` seconds from now; return it as it is then.

        A job that was moved before is moved on from where it is now. Its old ids never reach its queue: that is a
        promise. A repeat under the same `call`, or to the time at which it is due, returns the same id: a delay counts
        from the first attempt of a call. Raises InvalidJob, JobNotFound, RunOfSchedule, or AlreadyFinished when the
        job was sent to its queue or cancelled: then nothing is changed. After Throttled or Unavailable either the job
        as it was exists or the moved one; the error has its id if there may be one.
        """
        if at is None and delay is None:
            raise InvalidJob("at and delay are both missing: give one of them")
        due = Request(at=at, delay=delay).due(now=self._clock.now())
        earliest = due if at is None else min(due, instant.round_up(at))
        time = _NewTime(due=due, earliest=earliest, call=None if call is None else keys.checked_call(call))
        for _ in range(_ATTEMPTS):
            now = self._clock.now()
            row = None if key is None else keys.read_key(key, self._queue.name, table=self._table, now=now)
            source = id if row is None else row.id
            if source is None:
                raise InvalidJob("id and key are both missing: give one of them")
            earlier = row.call_of(call) if row and call else None
            if row and call and (row.call == call or (earlier and not earlier.is_move)):
                raise KeyReused(f"idempotency_key is {call!r}: it was used to schedule a job under key {key!r}")
            source = earlier.id if earlier else source
            if (result := self._attempt(source, row, time, is_repeat=earlier is not None)) is not None:
                return result
        raise NotYet(f"job {source} was moved by others at each of {_ATTEMPTS} attempts: try again")

    def _attempt(
        self, source: JobId, row: "keys.KeyRow | None", time: _NewTime, *, is_repeat: bool
    ) -> RescheduleResult | None:
        """Follow a job to where it is now, and move it unless this call has; None if it was changed meanwhile."""
        id, now = source, self._clock.now()
        for _ in range(MOST_HOPS + 1):
            of_job = [rows.parked_key(id), rows.handled_key(id), rows.job_key(id)]
            existing = read_whether_left(id, of_job, table=self._table)
            cancellation = existing.get(rows.cancellation_key(id))
            moved = moved_to(cancellation) if cancellation and id.route is Route.TABLE else None
            if moved is None:
                break
            is_repeat |= time.call is not None and moved.uid == time.uid_after(id, new_uid=self._new_uid)
            id = moved
        else:
            raise too_many_hops(source)
        is_there = id != source and cancellation is None and time.earliest <= id.due <= time.due
        if is_repeat or is_there:
            return RescheduleResult(id=id, moved_from=source, was_before=True)
        movable = self._movable(id, existing, is_by_key=row is not None, now=now)
        if id.due == time.due:
            return RescheduleResult(id=id, moved_from=source, was_before=True)
        job = self._successor(movable, time)
        change = None if row is None else row.moved(job, call=time.call, now=now)
        fence = rows.read_state(existing.get(rows.state_key(id.partition))).fence
        is_done = self._mover.run(Intent(job=job, old=id, change=change), fence=fence)
        return RescheduleResult(id=job.id, moved_from=source, was_before=False) if is_done else None

    def _movable(self, id: JobId, existing: Rows, *, is_by_key: bool, now: datetime) -> StoredJob:
        """Return the job of an id, if it waits in the table and is no run of a schedule.

        A key's row knows partitions that this process may not know yet.
        """
        if not existing and not is_by_key:
            check_partition(id, BatchRead(), queue=self._queue)
        row, cancellation = existing.get(rows.job_key(id)), existing.get(rows.cancellation_key(id))
        if cancellation is not None:
            _refuse(id, cancellation)
        is_over = not rows.is_live(row, now=now) if row else now >= id.due + self._queue.retention
        if is_over:
            raise JobNotFound(f"nothing is known of job {id}: it is past its retention")
        if has_left(id, existing):
            # Once cancellations may have been collected, that none was read just now says nothing.
            if not rows.is_cancellation_kept(id, now=self._clock.now()):
                raise Unavailable(f"whether job {id} was sent or cancelled is not known any more")
            _refuse(id)
        if row is None:
            on_its_way = "it may still be on its way there, then try again in a moment"
            raise NotYet(f"job {id} is not in the table: {on_its_way}; or no such job was ever scheduled")
        job = rows.read_job(row)
        check_movable(job)
        return job

    def _successor(self, job: StoredJob, time: _NewTime) -> StoredJob:
        """Return what takes a job's place, with a copy of the payload that it points to, which lasts as long."""
        # In the same partition, so that one fence speaks for both.
        id = replace(job.id, due=time.due, uid=time.uid_after(job.id, new_uid=self._new_uid))
        successor = replace(job, id=id, expires=time.due + self._queue.retention)
        if job.offloaded_bytes is None:
            return successor
        try:
            source = Pointer.parse(job.payload)
        except ValueError:
            return successor  # who sends to the inbound queue may point in a way of their own
        return self._offload.move(successor, source=source)


def _refuse(id: JobId, cancellation: Row | None = None) -> NoReturn:
    """Raise the error that a job can be moved no more. A direct job has left, whatever a cancellation says."""
    is_cancelled = cancellation is not None and id.route is Route.TABLE
    became = "was cancelled" if is_cancelled else "has left for its queue"
    raise AlreadyFinished(f"job {id} {became}: it can be moved no more")
