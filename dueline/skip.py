"""Skip: tell a worker which of the jobs that it received were cancelled."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from dueline.errors import RETRYABLE, DuelineError, Unavailable
from dueline.model import rows
from dueline.model.job import JobId
from dueline.model.message import batches
from dueline.ports import READ_KEYS, Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancellations:
    """Which of some jobs were cancelled, promised or only requested, and of which that is unknown, and why."""

    cancelled: set[JobId] = field(default_factory=set)
    unread: dict[JobId, DuelineError] = field(default_factory=dict)


def cancelled_among(ids: Iterable[JobId], *, table: Table) -> set[JobId]:
    """Return which of some jobs were cancelled before this was asked, promised or only requested.

    To be asked just before the handler runs, for a whole received batch at once. Raises Throttled or Unavailable: then
    nothing is known of any of them, and they are to be received again.
    """
    found = cancellations_of(ids, table=table)
    for fault in found.unread.values():
        raise fault
    return found.cancelled


def cancellations_of(ids: Iterable[JobId], *, table: Table) -> Cancellations:
    """Return what is known of some jobs' cancellations, read in requests of 100: what is unread fails alone."""
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
