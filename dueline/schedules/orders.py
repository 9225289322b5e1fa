"""Orders: a call on demand under an idempotency key, which is carried out by the schedule as the first try found it."""

import json
from dataclasses import dataclass, replace
from datetime import datetime

from dueline.errors import InvalidJob, KeyReused, Unavailable
from dueline.model import rows
from dueline.model.job import Job
from dueline.model.packing import pack, unpack
from dueline.model.rows import Row
from dueline.model.text import shown
from dueline.ports import Table
from dueline.protocol import keys
from dueline.protocol.offload import hash_of
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head
from dueline.schedules.occurrence import occurrence

# The schedule and the nominal are part of the idempotency key as well.
MAX_KEY_CHARACTERS = 128
# No key of a job has it: those are printable.
_SEPARATOR = "\x1f"
# Far more than a definition has: a payload is packed into 8 KiB at most.
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A schedule as the first call under a key found it, and the run that this call made: a Repeat if it is done."""

    head: Head
    run: Job


def key_of(run: str, key: str | None) -> str | None:
    """Return the idempotency key of a run. Raises InvalidJob unless `key` has 1 to 128 printable ASCII characters."""
    if key is None:
        return None
    if not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()):
        raise InvalidJob(f"key is {shown(key)}: it must have 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")
    return f"{run}{_SEPARATOR}{key}"


def is_claimed(key: str, queue: str, *, table: Table, now: datetime) -> bool:
    """Tell whether an earlier call has claimed a key of a run. Raises Throttled or Unavailable."""
    row_key = rows.idempotency_key(queue, key)
    reading = table.read([row_key])
    if row_key in reading.unread:
        raise Unavailable(f"row {row_key} was left unread: try again")
    return rows.is_live(reading.rows.get(row_key), now=now)


def claim(key: str, head: Head, run: Job, *, asked: str, table: Table, now: datetime) -> Order:
    """Return what the first call under a key was made by, which is this one if there is none.

    `asked` is what the caller gave: a schedule that was changed between two calls makes no other run of the second.
    Raises KeyReused when the key was used for what was asked otherwise, Throttled or Unavailable.
    """
    asked_hash = hash_of(asked)
    definition = pack(json.dumps(head.definition.to_dict(), separators=(",", ":")))
    row = table.claim({**rows.idempotency_row(run, key, payload_hash=asked_hash), "definition": definition}, now=now)
    try:
        first = keys.first_of(row, key, run, payload_hash=asked_hash)
    except KeyReused:
        own = key.rpartition(_SEPARATOR)[2]
        used = f"it was used for something else of schedule {head.name!r}, another payload or other instants"
        raise KeyReused(f"key is {shown(own)}: {used}") from None
    then = replace(head, definition=_definition(row) or head.definition)
    made = replace(occurrence(then, first.id.due), id=first.id, expires=first.expires)
    return Order(head=then, run=keys.Repeat.of(made) if isinstance(first, keys.Repeat) else made)


def _definition(row: Row) -> Definition | None:
    """Return the definition that a key's row keeps; one of before kept none."""
    packed = row.get("definition")
    if not isinstance(packed, bytes):
        return None
    try:
        return Definition.from_dict(json.loads(unpack(packed, most=_MOST_BYTES)))
    except (AttributeError, TypeError, ValueError) as error:
        raise Unavailable(f"row {rows.key(row)} cannot be read: {type(error).__name__}: {error}") from None
