"""Rows of moves: they say that a move was asked for, and are put before its transaction.

DynamoDB does not say when others see the rows of a transaction that is not answered yet. So whoever meets one of these
and not what it speaks of asks for that by a conditional write (Table.ask_for), which the transaction keeps waiting.

`#asked` is of a job that may have been moved: its cancellation may not be seen yet. `#awaited` is of one that may have
taken another's place: its own row may not be seen yet. Both sort before the rows that they speak of.
"""

from datetime import datetime

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


def _row(id: JobId, kind: str, at: datetime) -> Row:
    """Return a row that is kept for as long as a cancellation of the same job."""
    pk, sk = rows.key_of(id, kind)
    cancellation = rows.cancellation_row(id, at=at)
    return {"pk": pk, "sk": sk, "at": cancellation["at"], "ttl": cancellation["ttl"]}
