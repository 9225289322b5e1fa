"""The planner: one step of a schedule for each planning job.

Read the head; submit the occurrences of the step, then the next planning job; then say so in the head. A crash
anywhere repeats the same ids. Nothing is ever planned beyond the step that begins at `planned_to`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline.model.message import Message
from dueline.ports import Clock, Spread, Table
from dueline.protocol.table_route import TableRoute

# Longer than any process can live that has begun what is waited for.
GIVEN_UP_AFTER = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """A message with a planning job, and when it was received for the first time."""

    message_id: str
    message: Message
    first_received: datetime


@dataclass(kw_only=True, slots=True)
class Planned:
    """What became of planning jobs.

    `again` names the messages to put back, each with the seconds after which it is to be visible again; all others are
    done. `submitted` and `missed` count runs by queue, `dropped` planning jobs that waited for an hour in vain.
    """

    again: dict[str, int] = field(default_factory=dict)
    submitted: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    faults: set[str] = field(default_factory=set)


class Planner:
    """Plans schedules. `route` takes jobs of their queues, and planning jobs, to the table."""

    def __init__(self, *, table: Table, route: TableRoute, clock: Clock, spread: Spread = map) -> None:
        self._table = table
        self._route = route
        self._clock = clock
        self._spread = spread

    def run(self, batch: Sequence[Received], *, until: float) -> Planned:
        """Plan a step for each planning job; begin no request after `until` (monotonic). Never raises."""
        raise NotImplementedError

    def revive(self, queues: Iterable[str], *, until: float) -> Counter[str]:
        """Submit the planning jobs of schedules that stand still; return how many there were, by queue.

        All heads of these queues are read, page by page. Raises Throttled or Unavailable.
        """
        raise NotImplementedError
