"""What makes retries idempotent: the name of a call (Idempotency-Key), or an id that the caller chose."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dueline.core import instant, keys, rows
from dueline.core.job import JobId, Route, StoredJob
from dueline.core.ports import ParallelMap, Table
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import FURTHEST, MAX_DELAY_SECONDS, Request
from dueline.core.rows import Key, Row
from dueline.core.text import shown
from dueline.errors import RETRYABLE, InvalidJob, JobNotFound, KeyReused, Unavailable

# So that a key is free by every caller's clock.
CLOCKS_DIFFER = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyClaim:
    """The job that belongs to a key, and whether an earlier call has submitted it already."""

    job: StoredJob
    is_done: bool = False


def claim(key: str, job: StoredJob, *, payload_hash: str, table: Table, now: datetime) -> KeyClaim:
    """Return the job to submit under a key: this one, or that of an earlier call, which may not have submitted it.

    Raises KeyReused when the key was used for another payload or kind, Throttled or Unavailable: nothing was submitted.
    """
    row = table.claim(rows.idempotency_row(job, key, payload_hash=payload_hash), now=now)
    first = first_of(row, key, job, payload_hash=payload_hash)
    is_unsettled = first.job.id != job.id and not first.is_done
    if is_unsettled and not table.share(rows.key(row), id=str(first.job.id)):
        raise Unavailable(f"idempotency_key is {key!r}: the call that used it was refused at this moment: try again")
    return first


def release(row: Key, id: JobId, *, table: Table, ttl: datetime) -> None:
    """Release a key, by its row, whose job was refused and never sent. If that fails, the key stays that job's."""
    try:
        table.release(row, id=str(id), ttl=int(ttl.timestamp()))
    except RETRYABLE:
        return


def first_of(row: Row, key: str, job: StoredJob, *, payload_hash: str) -> KeyClaim:
    """Return this job with the id, tenant and priority that a key's row has, as `claim` does. Raises KeyReused."""
    try:
        first = JobId.parse(str(row.get("id")))
        tenant, priority = str(row["tenant"]) if "tenant" in row else None, int(row.get("priority", 1))
        kept = replace(job, id=first, expires=first.due + (job.expires - job.id.due), tenant=tenant, priority=priority)
    except (InvalidJob, JobNotFound, ValueError, TypeError):
        # A direct producer may write anything there: it is no reason to submit a second job.
        raise KeyReused(f"idempotency_key is {key!r}: its row names no job: use another key") from None
    if first.queue != job.id.queue:
        # Only a direct producer's own row names one: it is not to reach that queue with the API's rights.
        raise KeyReused(f"idempotency_key is {key!r}: it was used for job {first}, which is of another queue")
    if row.get("payload_hash") != payload_hash:
        raise KeyReused(f"idempotency_key is {key!r}: it was used for job {first}, which has another payload or kind")
    return KeyClaim(job=kept, is_done=bool(row.get("done")))


def is_free(row: Key, *, table: Table, now: datetime) -> bool:
    """Return whether it was read that no call has claimed a key, by its row. Raises Throttled or Unavailable."""
    reading = table.read([row])
    return row not in reading.unread and not rows.is_live(reading.rows.get(row), now=now)


def note_done(jobs: Iterable[tuple[Key, JobId]], *, table: Table, spread: ParallelMap) -> None:
    """Mark keys, by their rows, as done: their jobs were submitted. If that fails, a repeat submits the id once more.

    A key that was claimed for another job meanwhile, after its retention, is left alone; one that names another by now
    remembers the call.
    """

    def note(submitted: tuple[Key, JobId]) -> None:
        row, id = submitted
        with suppress(*RETRYABLE, KeyReused):
            if not table.mark_done(row, id=str(id)) and rows.is_name(row):
                keys.note_displaced(id, row, table=table)

    list(spread(note, jobs))


# By how much the caller's clock may be ahead: its id for 10 years from now is to be as good as a delay of 10 years.
_AHEAD = timedelta(minutes=1)
_EXCLUDED = {"at": "an id says when its job is due", "delay": "an id says when its job is due"} | {
    "key": "a job that has an id of its own is there once without a key"
}


def parsed(text: object) -> JobId:
    """Return the id in a text. Raises InvalidJob unless it is written as ids are."""
    try:
        return JobId.parse(text)  # type: ignore[arg-type]  # it may be anything
    except JobNotFound:
        form = "{queue}.{partition}.{d or t}.{due in ms}.{UUID}, in lower case"
        raise InvalidJob(f"id is {shown(text, most=200)}: it must be of the form {form}") from None


def check_alone(request: Request) -> None:
    """Raise InvalidJob if a request has an id, and beside it what an id takes the place of."""
    for name, reason in _EXCLUDED.items():
        if request.id is not None and getattr(request, name) is not None:
            raise InvalidJob(f"id and {name} are both given: give one of them, {reason}")


def checked_id(text: str, *, queue: QueueSettings, now: datetime) -> JobId:
    """Return the id in a text, if a job may be scheduled under it now.

    Raises InvalidJob, which says why, where it is another queue's, or in a partition that takes no jobs; where its job
    is due in over 10 years, or is past its retention; and where its route is direct and SQS cannot hold it until it is
    due. The table's route takes whatever is due, however soon.
    """
    id = parsed(text)
    if reason := _refusal(id, queue=queue, now=now):
        raise InvalidJob(f"id is {text!r}: {reason}")
    return id


def _refusal(id: JobId, *, queue: QueueSettings, now: datetime) -> str | None:
    due = instant.text(id.due)
    if id.queue != queue.name:
        return f"it is of queue {id.queue!r}, and the job is for {queue.name!r}"
    if not queue.declares(id.partition):
        return f"partition {id.partition.number} takes no jobs, queue {queue.name!r} has 0 to {queue.partitions - 1}"
    if id.due + queue.retention <= now:
        days = queue.retention / timedelta(days=1)
        return f"its job was due at {due}, and is past its retention of {days:g} days: it would never be sent"
    if id.due > now + FURTHEST + _AHEAD:
        return f"its job is due at {due}: the latest is {instant.text(instant.round_up(now + FURTHEST))}, in 10 years"
    if id.route is Route.DIRECT and id.due - now > timedelta(seconds=MAX_DELAY_SECONDS):
        return f"its job is due at {due}, and by route d SQS can hold it for {MAX_DELAY_SECONDS} s: give it route t"
    return None
