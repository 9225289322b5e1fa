"""Control: whether a queue is paused, and at what rate its workers may begin jobs."""

from dataclasses import dataclass

from dueline.errors import Unavailable
from dueline.model.control_rows import is_paused, paused_key, rate_key, read_rate
from dueline.model.rate import Rate
from dueline.ports import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """Whether a queue is paused, and the rate of all its workers together; None is no limit.

    `rate_set` is when the rate was set, as text: the slots of a rate that is set again begin anew. It is "" in answers
    of the HTTP API.
    """

    paused: bool = False
    rate: Rate | None = None
    rate_set: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether its workers may begin no job at all: it is paused, or its rate is 0."""
        return self.paused or (self.rate is not None and self.rate.jobs == 0)


def read_control(queue: str, *, table: Table, consistent: bool = False) -> Control:
    """Return a queue's pause and rate. Raises Throttled or Unavailable."""
    keys = [paused_key(queue), rate_key(queue)]
    reading = table.read(keys, consistent=consistent)
    if reading.unread:
        raise Unavailable(f"the pause and rate of queue {queue!r} could not be read: try again")
    paused, limit = (reading.rows.get(each) for each in keys)
    rate, rate_set = read_rate(limit)
    return Control(paused=is_paused(paused), rate=rate, rate_set=rate_set)
