"""Watchdog: submit the planning jobs of schedules that stand still.

None does as long as no planning job is lost: one that waited for an hour in vain, or went to the dead-letter queue.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from dueline.errors import Unavailable
from dueline.model.job import Job
from dueline.model.rows import Row
from dueline.ports import Clock, Table
from dueline.protocol.table_route import TableRoute
from dueline.schedules.head import read_head
from dueline.schedules.occurrence import planning_job
from dueline.schedules.submitting import submit

PAGE = 100
# A planner may have a backlog. What it plans twice is the same.
GRACE_TICKS = 5


class Watchdog:
    """Watches over the schedules of queues. `route` takes planning jobs to the table.

    One stands still whose planning job should have come five times `tick_period` ago.
    """

    def __init__(self, *, table: Table, route: TableRoute, clock: Clock, tick_period: timedelta) -> None:
        self._table = table
        self._route = route
        self._clock = clock
        self._grace = GRACE_TICKS * tick_period

    def revive(self, queue: str, *, until: float) -> int:
        """Submit the planning job of each schedule that stands still; return how many there were.

        All heads of the queue are read, page by page; no send begins after `until` (monotonic). Safe to repeat. Raises
        Throttled or Unavailable, for a head that cannot be read at the end.
        """
        revived, unreadable = 0, list[Unavailable]()
        for page in self._pages(queue):
            now = self._clock.now()
            jobs = [job for row in page if (job := _overdue(row, unreadable, now=now, grace=self._grace))]
            submit(jobs, route=self._route, until=until)
            revived += len(jobs)
        if unreadable:
            raise unreadable[0]
        return revived

    def _pages(self, queue: str) -> Iterator[Sequence[Row]]:
        after, more = "", True
        while more:
            page = self._table.heads(queue, after=after, limit=PAGE)
            yield page.rows
            after, more = str(page.rows[-1]["sk"]) if page.rows else after, page.more


def _overdue(row: Row, unreadable: list[Unavailable], *, now: datetime, grace: timedelta) -> Job | None:
    """Return the planning job of a schedule if the planner should have had it long ago.

    A generation's first one is due before that begins.
    """
    try:
        head = read_head(row)
    except Unavailable as error:
        unreadable.append(error)
        return None
    job = planning_job(head, head.planned_to, now=now) if head.is_live else None
    return job if job and max(job.id.due, head.start) + grace < now else None
