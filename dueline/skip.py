"""Skip: which of the jobs that a worker received were cancelled."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from dueline.errors import RETRYABLE, DuelineError, Unavailable
from dueline.model import rows
from dueline.model.job import JobId
from dueline.model.message import batches
from dueline.ports import READ_KEYS, Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancellations:
    """The jobs that were cancelled, CANCELLED or CANCEL_REQUESTED, and the errors of those that could not be read."""

    cancelled: set[JobId] = field(default_factory=set)
    unread: dict[JobId, DuelineError] = field(default_factory=dict)


def cancelled_among(ids: Iterable[JobId], *, table: Table) -> set[JobId]:
    """Return the jobs that were cancelled before this call, CANCELLED or CANCEL_REQUESTED.

    For consumers of your own: an id is `JobId.parse` of a message's attribute `dueline-id`, the table a `DynamoTable`.
    Call it just before the handler runs, for a whole received batch. Raises Throttled or Unavailable: then it is not
    known of any of them, and they should be received again.
    """
    found = cancellations_of(ids, table=table)
    for fault in found.unread.values():
        raise fault
    return found.cancelled


def cancellations_of(ids: Iterable[JobId], *, table: Table) -> Cancellations:
    """Return which jobs were cancelled, read 100 at a time; those that could not be read do not fail the others."""
    found = Cancellations()
    for some in batches(dict.fromkeys(ids), size=lambda _: 0, most=READ_KEYS):
        by_key = {rows.cancellation_key(id): id for id in some}
        try:
            reading = table.read(list(by_key))
        except RETRYABLE as fault:
            found.unread.update(dict.fromkeys(some, fault))
            continue
        left = Unavailable(f"{len(reading.unread)} cancellations could not be read: try again")
        found.unread.update((by_key[key], left) for key in reading.unread)
        found.cancelled.update(by_key[key] for key in reading.rows)
    return found
