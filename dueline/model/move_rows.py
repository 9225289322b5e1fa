"""Rows of moves: they say that a move was asked for, and are put before its transaction.

DynamoDB does not say when others see the rows of a transaction that is not answered yet. So whoever meets one of these
and not what it speaks of asks for that by a conditional write (Table.ask_for), which the transaction keeps waiting.

`#asked` is of a job that may have been moved: its cancellation may not be seen yet. `#awaited` is of one that may have
taken another's place: its own row may not be seen yet. Both sort before the rows that they speak of.

What became of a move, the cancellation tells: its `moved_to`.
"""

from datetime import datetime

from dueline.errors import JobNotFound
from dueline.model import rows
from dueline.model.job import JobId
from dueline.model.rows import Key, Row

ASKED = "asked"
AWAITED = "awaited"


def asked_key(id: JobId) -> Key:
    return rows.key_of(id, ASKED)


def asked_row(id: JobId, *, at: datetime) -> Row:
    return _row(id, ASKED, at)


def awaited_row(id: JobId, *, at: datetime) -> Row:
    return _row(id, AWAITED, at)


def moved_to(cancellation: Row) -> JobId | None:
    """Return the job that replaced a cancelled one, or None.

    None, too, if it cannot be read or is of another queue: who may write the rows of one queue may write it there.
    """
    try:
        moved = JobId.parse(str(cancellation.get("moved_to")))
    except JobNotFound:
        return None
    queue, _, _ = str(cancellation["pk"]).rpartition("#")
    return moved if moved.queue == queue else None


def _row(id: JobId, kind: str, at: datetime) -> Row:
    """Return a row that is kept for as long as a cancellation of the same job."""
    pk, sk = rows.key_of(id, kind)
    cancellation = rows.cancellation_row(id, at=at)
    return {"pk": pk, "sk": sk, "at": cancellation["at"], "ttl": cancellation["ttl"]}
