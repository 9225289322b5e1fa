"""Skip: tell a worker which of the jobs that it received were cancelled."""

from collections.abc import Iterable

from dueline import rows
from dueline.errors import Unavailable
from dueline.job import JobId
from dueline.ports import Table


def cancelled_among(ids: Iterable[JobId], *, table: Table) -> set[JobId]:
    """Return which of up to 100 jobs were cancelled before this was asked, promised or only requested.

    To be asked just before the handler runs, for a whole received batch at once. Raises Throttled or Unavailable: then
    nothing is known of any of them, and they are to be received again.
    """
    by_key = {rows.cancellation_key(id): id for id in ids}
    reading = table.read(list(by_key))
    if reading.unread:
        raise Unavailable(f"{len(reading.unread)} cancellations could not be read: try again")
    return {by_key[key] for key in reading.rows}
