"""Watchdog: submit the planning jobs of stalled schedules.

A schedule stalls only when its planning job is lost: it waited for an hour in vain, or went to the dead-letter queue.
A planning job is due by the time zones of when it was made, so all are submitted again once there is a newer tzdata.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from dueline.core.ports import Clock, Table
from dueline.core.rows import Row
from dueline.core.table_writer import TableWriter
from dueline.schedules.head import planning_job, readable_heads, submit
from dueline.schedules.rule import tzdata_version
from dueline.schedules.schedule_rows import tzdata_key

PAGE = 100
# A planner may have a backlog. What it plans twice is the same.
GRACE_TICKS = 5
_NOTED = timedelta(days=400)


class Watchdog:
    """Watches over the schedules of queues. `route` writes planning jobs to the table.

    One is stalled whose planning job should have come five times `tick_period` ago. `tzdata` is the version of the time
    zones' rules, by default that in use.
    """

    def __init__(
        self, *, table: Table, route: TableWriter, clock: Clock, tick_period: timedelta, tzdata: str | None = None
    ) -> None:
        self._table, self._route, self._clock = table, route, clock
        self._grace = GRACE_TICKS * tick_period
        self._tzdata = tzdata

    def revive(self, queue: str, *, until: float) -> int:
        """Submit the planning job of each stalled schedule, or with a newer tzdata of all; count the stalled.

        All heads of the queue are read, page by page; one that cannot be read is logged and counted: its schedule is
        stalled until the row is repaired. No send starts after `until` (monotonic). Safe to repeat. Raises Throttled or
        Unavailable.
        """
        stalled, is_replanned = 0, self._is_tzdata_noted(queue)
        for page in self._pages(queue):
            now = self._clock.now()
            heads, unreadable = readable_heads(page)
            jobs = [
                (head, job) for head in heads if head.is_live and (job := planning_job(head, head.planned_to, now=now))
            ]
            overdue = [job for head, job in jobs if max(job.id.due, head.start) + self._grace < now]
            submit(overdue if is_replanned else [job for _, job in jobs], route=self._route, until=until)
            stalled += len(overdue) + unreadable
        if not is_replanned:
            self._note_tzdata(queue)
        return stalled

    def _is_tzdata_noted(self, queue: str) -> bool:
        """Return whether all planning jobs of a queue are due by the tzdata in use."""
        key = tzdata_key(queue)
        row = self._table.read([key]).rows.get(key)
        return row is not None and row.get("version") == self._version()

    def _version(self) -> str:
        # Read when it is needed: a planner that starts imports no tzdata.
        return self._tzdata or tzdata_version()

    def _note_tzdata(self, queue: str) -> None:
        pk, sk = tzdata_key(queue)
        ttl = int((self._clock.now() + _NOTED).timestamp())
        # Left unwritten, the next round submits them once more.
        self._table.write([{"pk": pk, "sk": sk, "version": self._version(), "ttl": ttl}])

    def _pages(self, queue: str) -> Iterator[Sequence[Row]]:
        after, more = "", True
        while more:
            page = self._table.heads(queue, after=after, limit=PAGE)
            yield page.rows
            after, more = str(page.rows[-1]["sk"]) if page.rows else after, page.more
