"""TTL guard: while jobs wait for a tick that does not come, DynamoDB's TTL collects nothing.

TTL deletes a row when its job's retention is over, handed over or not. So whenever a job is hours past due and no tick
has passed it, TTL is switched off for the whole table, and on again once every partition has caught up. How late a
partition is, is read from its rows and not from its fence: ticks that run and cannot send raise the fence all the same.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Protocol

from dueline.core import instant, rows
from dueline.core.job import Partition
from dueline.core.partitions import states_of
from dueline.core.ports import Clock, ParallelMap, Table
from dueline.errors import RETRYABLE, DuelineError, NotYet

# The shortest retention is a day, and DynamoDB may take an hour to switch.
LATE = timedelta(hours=6)
CAUGHT_UP = timedelta(minutes=15)


class TtlStatus(StrEnum):
    """What TTL does on the table of jobs, in DynamoDB's words."""

    ENABLED = "ENABLED"
    ENABLING = "ENABLING"
    DISABLED = "DISABLED"
    DISABLING = "DISABLING"

    @property
    def is_on(self) -> bool:
        """Whether it collects rows, or will."""
        return self in (TtlStatus.ENABLED, TtlStatus.ENABLING)


class TimeToLive(Protocol):
    """DynamoDB's TTL on the table of jobs."""

    def status(self) -> TtlStatus:
        """Return whether it is on. Raises Throttled or Unavailable, with a caller's credentials Forbidden too."""

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

    was: TtlStatus
    behind: tuple[LatePartition, ...]
    unknown: int = 0
    switched: bool | None = None
    fault: str = ""

    @property
    def is_on(self) -> bool:
        return self.was.is_on if self.switched is None else self.switched


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
        was = self.time_to_live.status()
        switch_on = not self._are_late(behind) if was.is_on else not (behind or unknown)
        return self._switch(GuardResult(was=was, behind=behind, unknown=unknown), switch_on=switch_on)

    def _switch(self, result: GuardResult, *, switch_on: bool) -> GuardResult:
        if switch_on == result.was.is_on:
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
        states = states_of(partitions, table=self.table, spread=self.spread)
        readable = [each for each in partitions if rows.state_key(each) not in states.unread]
        read = {each: rows.read_state(states.rows.get(rows.state_key(each))) for each in readable}
        until = rows.end_of(instant.text(self.clock.now() - self.caught_up))
        answers = list(self.spread(partial(self._first_of, states=read, until=until), readable))
        faults = sum(isinstance(each, DuelineError) for each in answers)
        behind = tuple(each for each in answers if isinstance(each, LatePartition))
        return behind, faults + len(partitions) - len(readable)

    def _first_of(
        self, partition: Partition, *, states: dict[Partition, rows.PartitionState], until: str
    ) -> LatePartition | DuelineError | None:
        """Return what a partition waits with, or None, or what kept it from being read: it must not hide the others."""
        state = states[partition]
        if state.cursor >= until:
            return None
        try:
            page = self.table.page(partition, after=state.cursor, until=until, limit=1)
        except RETRYABLE as fault:
            return fault
        if not page.rows:
            return None
        # A tick parks a row whose key has no due time. Jobs may wait behind it.
        due = rows.due_at(str(page.rows[0]["sk"])) or instant.EPOCH
        fence = instant.parse(state.fence) if state.fence else None
        return LatePartition(partition=partition, due=due, fence=fence)
