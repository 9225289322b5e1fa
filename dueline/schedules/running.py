"""Running: have a schedule run now, or for nominals that have passed. Its own runs are not touched."""

from datetime import datetime, timedelta

from dueline.model.job import Job
from dueline.ports import Clock, Spread, Table
from dueline.protocol.table_route import TableRoute
from dueline.schedules.changes import PATIENCE

MOST_BACKFILLED = 500


class Runs:
    """Makes runs of schedules on demand. `route` takes jobs of their queue.

    `key` makes a call safe to repeat: the same key submits the same jobs once. After Throttled or Unavailable the jobs
    may or may not be submitted.
    """

    def __init__(
        self, *, table: Table, route: TableRoute, clock: Clock, spread: Spread = map, patience: timedelta = PATIENCE
    ) -> None:
        self._table = table
        self._route = route
        self._clock = clock
        self._spread = spread
        self._patience = patience

    def run_now(self, queue: str, name: str, *, payload: str | None = None, key: str | None = None) -> Job:
        """Submit a job of a schedule that is due now, its nominal now; return it. A paused schedule runs as well.

        `payload` is JSON text, by default the schedule's. Raises ScheduleNotFound, InvalidJob, KeyReused, Throttled or
        Unavailable.
        """
        raise NotImplementedError

    def backfill(self, queue: str, name: str, *, start: datetime, end: datetime, key: str | None = None) -> list[Job]:
        """Submit a job, due now, for each nominal from `start` to just before `end`, by the rule as it is now.

        Raises InvalidSchedule when there are over 500, or `end` lies in the future; and as `run_now` does.
        """
        raise NotImplementedError
