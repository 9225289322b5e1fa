"""Keys: an idempotency key submits one job, however often it is used.

The key's row is put before the job is submitted, if there is none yet, and marked as done after. A later call that
finds it done returns the first job. One that finds it not done submits the first job's id again, because the first
caller may have died in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Self

from dueline.errors import RETRYABLE, InvalidJob, JobNotFound, KeyReused, Unavailable
from dueline.model import rows
from dueline.model.job import Job, JobId
from dueline.model.rows import Row
from dueline.model.text import shown
from dueline.ports import Spread, Table

MAX_CHARACTERS = 255


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat(Job):
    """A job that an earlier call submitted under the same key."""

    @classmethod
    def of(cls, job: Job) -> Self:
        return cls(**{each.name: getattr(job, each.name) for each in fields(job)})


def checked(key: object) -> str:
    """Return a key. Raises InvalidJob unless it has 1 to 255 printable ASCII characters."""
    if isinstance(key, str) and 1 <= len(key) <= MAX_CHARACTERS and key.isascii() and key.isprintable():
        return key
    raise InvalidJob(f"key is {shown(key)}: it must have 1 to {MAX_CHARACTERS} printable ASCII characters")


def claim(key: str, job: Job, *, payload_hash: str, table: Table, now: datetime) -> Job | Repeat:
    """Return the job to submit under a key: this one, or that of an earlier call that may not have submitted it.

    A Repeat was submitted already. Raises KeyReused when the key was used for another payload, Throttled or
    Unavailable: then this call submitted nothing.
    """
    row = table.claim(rows.idempotency_row(job, key, payload_hash=payload_hash), now=now)
    return first_of(row, key, job, payload_hash=payload_hash)


def first_of(row: Row, key: str, job: Job, *, payload_hash: str) -> Job | Repeat:
    """Return this job under the id that a key's row names, as `claim` does. Raises KeyReused."""
    first = JobId.parse(str(row["id"]))
    if first.queue != job.id.queue:
        # Only a direct producer's own row names one: it is not to reach that queue with the API's rights.
        raise KeyReused(f"key is {key!r}: it was used for job {first}, which is of another queue")
    if row["payload_hash"] != payload_hash:
        raise KeyReused(f"key is {key!r}: it was used for job {first}, which has another payload")
    kept = replace(job, id=first, expires=first.due + (job.expires - job.id.due))
    return Repeat.of(kept) if row["done"] else kept


def is_free(key: str, queue: str, *, table: Table, now: datetime) -> bool:
    """Tell whether it was read that no call has claimed a key. Raises Throttled or Unavailable."""
    row_key = rows.idempotency_key(queue, key)
    reading = table.read([row_key])
    return row_key not in reading.unread and not rows.is_live(reading.rows.get(row_key), now=now)


def job_under(key: str, queue: str, *, table: Table, now: datetime) -> JobId:
    """Return the job that a call asked for under a key, whether or not it was submitted then.

    Raises JobNotFound where there is none, InvalidJob for what is no key, Throttled or Unavailable.
    """
    row_key = rows.idempotency_key(queue, checked(key))
    reading = table.read([row_key])
    if row_key in reading.unread:
        raise Unavailable(f"the row of key {key!r} could not be read: try again")
    row = reading.rows.get(row_key)
    id = JobId.parse(str(row["id"])) if row and rows.is_live(row, now=now) else None
    # Only a direct producer's own row names a job of another queue: it tells nothing of that.
    if id is None or id.queue != queue:
        raise JobNotFound(f"no job of queue {queue} was scheduled under the key {key!r}, or its retention is over")
    return id


def note_done(jobs: Iterable[tuple[str, JobId]], *, table: Table, spread: Spread) -> None:
    """Mark keys as done: their jobs were submitted. If that fails, a repeat submits the same id once more.

    A key that was claimed for another job meanwhile, after its retention, is left alone.
    """

    def note(submitted: tuple[str, JobId]) -> None:
        key, id = submitted
        try:
            table.mark_done(rows.idempotency_key(id.queue, key), id=str(id))
        except RETRYABLE:
            return

    list(spread(note, jobs))
