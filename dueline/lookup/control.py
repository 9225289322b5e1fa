"""What holds for a queue's workers: whether it is paused, and how many jobs they may begin."""

from dataclasses import dataclass

from dueline.errors import Unavailable
from dueline.model.control_rows import is_paused, paused_key, rate_key, read_rate
from dueline.model.rate import Rate
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
