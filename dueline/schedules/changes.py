"""Changes: create, change, pause, resume and delete schedules, each in one transaction.

Up to one instant, `effective_from`, the old rule serves; after it the new one: never both, never neither.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.model.queue_settings import QueueSettings
from dueline.ports import Clock, Spread, Table
from dueline.protocol.table_route import TableRoute
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head

MOST_SCHEDULES = 10_000
# Whoever never stops may hold up one call: it tries so often, and for so long.
ATTEMPTS = 10
PATIENCE = timedelta(seconds=20)


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A schedule after a call: it serves as it is after `effective_from`.

    `is_changed` is False when it was as it was asked for already; `is_new` when there was none, or it had been deleted.
    """

    head: Head
    effective_from: datetime
    is_new: bool = False
    is_changed: bool = True


class Changes:
    """Changes schedules. `route` takes jobs of their queue, and planning jobs, to the table.

    After Throttled or Unavailable a change may or may not be done: to ask again is safe, and tells. With `if_match`, an
    entity tag, a schedule that is not as it was when that was read is left alone: ScheduleChanged. "*" matches any.
    """

    def __init__(
        self, *, table: Table, route: TableRoute, clock: Clock, spread: Spread = map, patience: timedelta = PATIENCE
    ) -> None:
        self._table = table
        self._route = route
        self._clock = clock
        self._spread = spread
        self._patience = patience

    def put(self, queue: QueueSettings, name: str, definition: Definition, *, if_match: str | None = None) -> Changed:
        """Create a schedule, or change it; an identical definition changes nothing. A paused one stays paused.

        Raises InvalidSchedule, TooManySchedules, ScheduleChanged; Throttled or Unavailable.
        """
        raise NotImplementedError

    def pause(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Have a schedule make no more runs. Raises ScheduleNotFound, ScheduleChanged; Throttled or Unavailable."""
        raise NotImplementedError

    def resume(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Have a paused schedule make runs again; nothing is caught up. Raises as `pause` does."""
        raise NotImplementedError

    def delete(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Delete a schedule. Raises as `pause` does; of one that was deleted before, it returns when that was."""
        raise NotImplementedError
