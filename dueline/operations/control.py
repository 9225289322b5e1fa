"""Control: pause a queue's workers and limit their rate, while they run."""

from datetime import datetime

from dueline.core.overview import Control, read_control
from dueline.core.ports import Table
from dueline.core.queue_settings import Rate
from dueline.core.rows import Row, key, paused_row, rate_row
from dueline.errors import Unavailable


def pause(queue: str, *, table: Table, now: datetime) -> Control:
    """Pause a queue: its workers begin no more jobs until it is resumed. Return its pause and rate.

    Jobs that have started run to their end. Jobs are still scheduled and sent to the queue. Repeats change nothing.
    Raises Throttled or Unavailable: then it may or may not be done.
    """
    return _set(queue, paused_row(queue, paused=True, at=now), table=table)


def resume(queue: str, *, table: Table, now: datetime) -> Control:
    """Resume a paused queue, as fast as its rate allows. Returns and raises as `pause` does."""
    return _set(queue, paused_row(queue, paused=False, at=now), table=table)


def set_rate(queue: str, rate: Rate | None, *, table: Table, now: datetime) -> Control:
    """Limit how many jobs all workers of a queue together begin, or lift the limit (None).

    A rate of 0 jobs stops them. Setting the same rate again changes nothing: no slot is given out twice. Returns and
    raises as `pause` does.
    """
    holds = read_control(queue, table=table, consistent=True)
    if holds.rate == rate:
        return holds
    return _set(queue, rate_row(queue, rate, at=now), table=table)


def _set(queue: str, row: Row, *, table: Table) -> Control:
    if table.write([row]):
        raise Unavailable(f"row {key(row)} was left unwritten: try again")
    return read_control(queue, table=table, consistent=True)
