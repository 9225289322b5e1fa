"""Cancel: take a job back, and say exactly what that promises."""

from datetime import datetime

from dueline import instant, rows
from dueline.errors import Unavailable
from dueline.job import JobId, Route, State
from dueline.ports import Table


def cancel(id: JobId, *, table: Table, now: datetime) -> State:
    """Cancel a job; return CANCELLED or CANCEL_REQUESTED.

    CANCELLED is a promise: the job never reaches its queue. CANCEL_REQUESTED: it is in its queue or may be on its way
    there; only workers that use the library still skip it. Neither asks whether the job exists, so a cancel that
    overtakes ingest holds. Repeats give the promise again. Raises Throttled or Unavailable: then nothing was promised.
    """
    cancellation = table.add(rows.cancellation_row(id, at=now))
    if cancellation["exact"]:
        return State.CANCELLED
    # Read after the cancellation is written: whoever raises the fence from here on will see the cancellation.
    if id.route is Route.DIRECT or _fence(id, table) >= instant.text(id.due):
        return State.CANCEL_REQUESTED
    table.mark_exact(rows.cancellation_key(id))
    return State.CANCELLED


def _fence(id: JobId, table: Table) -> str:
    key = rows.state_key(id.partition)
    reading = table.read([key])
    if key in reading.unread:
        raise Unavailable(f"the fence of {id.partition} could not be read: try again")
    return rows.read_state(reading.rows.get(key)).fence
