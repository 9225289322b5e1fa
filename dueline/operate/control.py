"""Control: pause a queue's workers, and limit how fast they begin jobs, while they run."""

from dataclasses import dataclass
from datetime import datetime

from dueline.errors import Unavailable
from dueline.model.control_rows import is_paused, paused_key, paused_row, rate_key, rate_row, read_rate
from dueline.model.rate import Rate
from dueline.model.rows import Row, key
from dueline.ports import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """Whether a queue is paused, and how many jobs its workers may begin in all; `rate` is None without a limit.

    `rate_set` says when the rate was set, as text, and so tells one setting of it from the next: its slots begin anew.
    The HTTP API does not tell it ("").
    """

    paused: bool = False
    rate: Rate | None = None
    rate_set: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether its workers may begin no job at all: it is paused, or its rate is 0."""
        return self.paused or (self.rate is not None and self.rate.jobs == 0)


def read_control(queue: str, *, table: Table, consistent: bool = False) -> Control:
    """Return what holds for a queue's workers. Raises Throttled or Unavailable."""
    keys = [paused_key(queue), rate_key(queue)]
    reading = table.read(keys, consistent=consistent)
    if reading.unread:
        raise Unavailable(f"the control of queue {queue!r} could not be read: try again")
    paused, limit = (reading.rows.get(each) for each in keys)
    rate, rate_set = read_rate(limit)
    return Control(paused=is_paused(paused), rate=rate, rate_set=rate_set)


def pause(queue: str, *, table: Table, now: datetime) -> Control:
    """Let a queue's workers begin no more jobs until it is resumed; return what holds then.

    What they have begun they end. Jobs go on being scheduled and handed to the queue. Asked again, it changes nothing.
    Raises Throttled or Unavailable: then it may or may not be done.
    """
    return _set(queue, paused_row(queue, paused=True, at=now), table=table)


def resume(queue: str, *, table: Table, now: datetime) -> Control:
    """Let a queue's workers go on, as fast as its rate allows; return what holds then, and raise as `pause` does."""
    return _set(queue, paused_row(queue, paused=False, at=now), table=table)


def set_rate(queue: str, rate: Rate | None, *, table: Table, now: datetime) -> Control:
    """Limit how many jobs a queue's workers begin, all of them together, or lift the limit (None).

    A rate of 0 jobs stops them. Asked again for the rate that holds, it changes nothing: no slot is given out twice.
    Returns what holds then, and raises as `pause` does.
    """
    holds = read_control(queue, table=table, consistent=True)
    if holds.rate == rate:
        return holds
    return _set(queue, rate_row(queue, rate, at=now), table=table)


def _set(queue: str, row: Row, *, table: Table) -> Control:
    if table.write([row]):
        raise Unavailable(f"row {key(row)} was left unwritten: try again")
    return read_control(queue, table=table, consistent=True)
