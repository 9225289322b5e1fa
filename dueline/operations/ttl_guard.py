"""TTL guard: while jobs wait for a tick that does not come, DynamoDB's TTL collects nothing.

TTL deletes a row when its job's retention is over, handed over or not. So whenever a job is hours past due and no tick
has passed it, TTL is switched off for the whole table, and on again once every partition has caught up. How late a
partition is, is read from its rows and not from its fence: ticks that run and cannot send raise the fence all the same.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from dueline.core import instant, rows
from dueline.core.job import Partition
from dueline.core.ports import Clock, ParallelMap, Table
from dueline.errors import DuelineError, NotYet
from dueline.operations.watch import look_at_each

# The shortest retention is a day, and DynamoDB may take an hour to switch.
LATE = timedelta(hours=6)
CAUGHT_UP = timedelta(minutes=15)


class TimeToLive(Protocol):
    """DynamoDB's TTL on the table of jobs."""

    def is_on(self) -> bool:
        """Return whether it collects rows, or will.

        Raises Throttled or Unavailable, with a caller's credentials Forbidden too.
        """

    def switch(self, *, on: bool) -> None:
        """Switch it; DynamoDB takes up to an hour to do so. What it is already is no error.

        Raises NotYet within an hour of the last time, Throttled or Unavailable.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class LatePartition:
    """A partition that is behind: `due` is that of its first row that no tick has passed, 1970 if it has none.

    `fence` is the end of the lookahead of its last tick, None if it never had one.
    """

    partition: Partition
    due: datetime
    fence: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardResult:
    """What the guard found, and what it did.

    `switched` is what it has switched TTL to, `fault` why it could not. Partitions of which nothing is known are among
    `unknown`: while there are any, TTL is not switched on.
    """

    was_on: bool
    behind: tuple[LatePartition, ...]
    unknown: int = 0
    switched: bool | None = None
    fault: str = ""

    @property
    def is_on(self) -> bool:
        return self.was_on if self.switched is None else self.switched


@dataclass(frozen=True, kw_only=True, slots=True)
class TtlGuard:
    """Looks at all partitions once, and switches TTL as they need it.

    `settle` is how long ticks take to pass a row that is late when it is written, such as that of a redriven job: what
    seems late is looked at again after that. `late` and `caught_up` are when TTL is switched off and on.
    """

    table: Table
    time_to_live: TimeToLive
    clock: Clock
    settle: timedelta
    spread: ParallelMap = map
    late: timedelta = LATE
    caught_up: timedelta = CAUGHT_UP

    def run(self, partitions: Collection[Partition], *, are_all: bool = True) -> GuardResult:
        """Look, and switch TTL off or on. `are_all` says whether there may be other partitions, which are unknown.

        Raises Throttled or Unavailable where nothing could be read.
        """
        behind, unread = self._look(partitions)
        if self._are_late(behind):
            self.clock.sleep(self.settle.total_seconds())
            behind, unread = self._look(partitions)
        unknown = unread + (not are_all)
        was_on = self.time_to_live.is_on()
        switch_on = not self._are_late(behind) if was_on else not (behind or unknown)
        result = GuardResult(was_on=was_on, behind=behind, unknown=unknown)
        if switch_on == was_on:
            return result
        try:
            self.time_to_live.switch(on=switch_on)
        except NotYet as error:
            return replace(result, fault=str(error))
        return replace(result, switched=switch_on)

    def _are_late(self, behind: Sequence[LatePartition]) -> bool:
        latest = self.clock.now() - self.late
        return any(each.due <= latest for each in behind)

    def _look(self, partitions: Collection[Partition]) -> tuple[tuple[LatePartition, ...], int]:
        """Return the partitions that are behind, and of how many nothing is known."""
        read = look_at_each(partitions, self._first_of, table=self.table, spread=self.spread).values()
        behind = tuple(each for each in read if isinstance(each, LatePartition))
        return behind, sum(isinstance(each, DuelineError) for each in read)

    def _first_of(self, partition: Partition, state: rows.PartitionState) -> LatePartition | None:
        """Return what a partition waits with, if it does."""
        until = rows.end_of(instant.text(self.clock.now() - self.caught_up))
        if state.cursor >= until:
            return None
        page = self.table.page(partition, after=state.cursor, until=until, limit=1)
        if not page.rows:
            return None
        # A tick parks a row whose key has no due time. Jobs may wait behind it.
        due = rows.due_at(str(page.rows[0]["sk"])) or instant.EPOCH
        fence = instant.parse(state.fence) if state.fence else None
        return LatePartition(partition=partition, due=due, fence=fence)
