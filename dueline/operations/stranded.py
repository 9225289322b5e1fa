"""Stranded: what a deployment would leave behind that removes a queue, or lowers its partitions, levels or days.

The reads are bounded, whatever waits: up to 1,000 jobs are counted. A schedule has a job in the table only for a
quarter of an hour before each run, and its runs never move to another partition: so schedules count as well, paused
ones too, which may be resumed, and deleted ones for as long as their name is kept.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import cached_property, partial

from dueline.core import rows
from dueline.core.job import MAX_PRIORITY, Partition
from dueline.core.listing import Snapshot, Span, scan
from dueline.core.partitions import states_of
from dueline.core.ports import Depth, ParallelMap, Queue, Table
from dueline.core.queue_settings import MOST_PARTITIONS, QueueSettings
from dueline.core.rows import Key, Row
from dueline.core.text import plural
from dueline.errors import QueueNotFound
from dueline.schedules.head import Head, head_pages, readable_heads

MOST_COUNTED = 1000
_HEADS_A_PAGE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class DeploymentShape:
    """What of a queue a deployment may take away; SQS keeps its messages for `message_days`."""

    partitions: int
    priorities: int
    message_days: int

    def loses(self, new: "DeploymentShape") -> bool:
        """Return whether a change to `new` takes anything away."""
        here, there = astuple(self), astuple(new)
        return any(after < before for before, after in zip(here, there, strict=True))


REMOVED = DeploymentShape(partitions=0, priorities=0, message_days=0)


@dataclass(frozen=True, kw_only=True)
class StrandedItems:
    """A queue as it is deployed, looked at once, in its table and its SQS queues.

    `level` returns the SQS queue of a priority, `dead_letters` the dead-letter queue.
    """

    queue: QueueSettings
    table: Table
    level: Callable[[int], Queue]
    dead_letters: Callable[[], Queue]
    now: datetime
    spread: ParallelMap = map

    def lost(self, old: DeploymentShape, new: DeploymentShape) -> list[str]:
        """Return what a change of the queue would strand, with counts. Raises Throttled or Unavailable.

        Of a queue that is REMOVED, also what it gave up before. A shorter retention of jobs is for new jobs alone.
        """
        return list(filter(None, self._of_removal(old) if new == REMOVED else self._of_change(old, new)))

    def _of_removal(self, old: DeploymentShape) -> Iterator[str]:
        yield self._jobs([*self._partitions(0), *self._given_up()])
        yield self._schedules(lambda _: True)
        kept = f", which SQS deletes within {old.message_days} days"
        levels = self._levels(1, MAX_PRIORITY)
        yield self._messages(f"in its SQS queues{kept}", levels)
        yield self._messages("in its dead-letter queue, which SQS deletes within 14 days", [self.dead_letters])

    def _of_change(self, old: DeploymentShape, new: DeploymentShape) -> Iterator[str]:
        if new.partitions < old.partitions:
            where = f" in partitions from {new.partitions} on"
            yield self._jobs(self._partitions(new.partitions), where=where)
            yield self._schedules(lambda head: head.partition.number >= new.partitions, where=where)
        if new.priorities < old.priorities:
            least = new.priorities + 1
            where = f" of priorities from {least} on"
            yield self._jobs(self._partitions(0), where=where, least=least)
            yield self._schedules(lambda head: head.definition.priority >= least and not head.deleted, where=where)
            levels = self._levels(least, old.priorities)
            yield self._messages(f"in the SQS queues of priorities from {least} on", levels)
        if new.message_days < old.message_days:
            where = f"in its SQS queues, which would delete what is older than {new.message_days} days"
            levels = self._levels(1, old.priorities)
            yield self._messages(where, levels, is_delayed_too=False)

    def _levels(self, first: int, last: int) -> list[Callable[[], Queue]]:
        return [partial(self.level, number) for number in range(first, last + 1)]

    def _partitions(self, first: int) -> list[Partition]:
        return self.queue.all_partitions()[first:]

    def _given_up(self) -> list[Partition]:
        """Return the partitions that the queue had once: ticks have left their states."""
        others = replace(self.queue, partitions=MOST_PARTITIONS).all_partitions()[self.queue.partitions :]
        states = self._states(others)
        return [each for each in others if rows.state_key(each) in states]

    def _states(self, partitions: Sequence[Partition]) -> Mapping[Key, Row]:
        states = states_of(partitions, table=self.table, spread=self.spread)
        return states.whole(f"states of queue {self.queue.name}")

    @cached_property
    def _heads(self) -> tuple[Sequence[Head], int]:
        """The queue's schedules, and how many rows of them cannot be read."""
        pages = head_pages(self.queue.name, table=self.table, limit=_HEADS_A_PAGE)
        # What is past its TTL is only not collected yet.
        return readable_heads(row for page in pages for row in page if rows.is_live(row, now=self.now))

    def _schedules(self, is_lost: Callable[[Head], bool], *, where: str = "") -> str:
        """Count schedules, those that cannot be read among them: of these all is possible."""
        heads, unreadable = self._heads
        number = sum(map(is_lost, heads)) + unreadable
        return f"{plural(number, 'schedule')}{where}{_said(unreadable)}" if number else ""

    def _jobs(self, partitions: Sequence[Partition], *, where: str = "", least: int = 1) -> str:
        snapshot = Snapshot(
            queue=self.queue,
            table=self.table,
            states=self._states(partitions),
            now=self.now,
            partitions=tuple(partitions),
        )
        scanned = scan(Span(limit=MOST_COUNTED), snapshot=snapshot, spread=self.spread)
        unreadable = rows.log_unreadable(scanned.unreadable)
        number = sum(int(row.get("priority", 1)) >= least for row in scanned.rows) + unreadable
        more = scanned.after is not None
        if not number and not more:
            return ""
        if more and least > 1:
            return f"{number:,} or more of its jobs{where}, of which the first {MOST_COUNTED:,} alone were read"
        count = f"{number:,} or more jobs" if more else plural(number, "job")
        return f"{count}{where}{_said(unreadable)}"

    def _messages(self, where: str, queues: Sequence[Callable[[], Queue]], *, is_delayed_too: bool = True) -> str:
        depths = list(self.spread(_depth, queues))
        number = sum(each.waiting + each.in_flight + each.delayed * is_delayed_too for each in depths)
        return f"{plural(number, 'message')} {where}" if number else ""


def _depth(queue: Callable[[], Queue]) -> Depth:
    try:
        return queue().depth()
    except QueueNotFound:
        return Depth(waiting=0, in_flight=0, delayed=0)


def _said(unreadable: int) -> str:
    return f", {unreadable:,} of them in rows that cannot be read" if unreadable else ""
