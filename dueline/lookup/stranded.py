"""Stranded: what a deployment would leave behind that takes away partitions or levels of a queue, or all of it.

A bounded number of reads tells it, whatever waits: it counts up to 1,000 jobs. A schedule has a job in the table only
for a quarter of an hour before each run: so it counts as well, where it would go on to make jobs. What queues.yaml
declares changes and goes with the stack.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import cached_property

from dueline.errors import QueueNotFound, Unavailable
from dueline.lookup.listing import Snapshot, Span, scan
from dueline.model import instant, nominal, rows
from dueline.model.job import MAX_PRIORITY, Partition
from dueline.model.queue_settings import MOST_PARTITIONS, QueueSettings
from dueline.model.rows import Row
from dueline.model.schedule_rows import Sketch, sketch_of
from dueline.ports import Depth, Queue, Reading, Spread, Table
from dueline.protocol.partitions import states_of

MOST_COUNTED = 1000
_HEADS_A_PAGE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What of a queue a deployment may take away; SQS keeps its messages for `message_days`."""

    partitions: int
    priorities: int
    message_days: int

    def loses(self, new: "Shape") -> bool:
        """Tell whether a change to `new` takes anything away."""
        here, there = astuple(self), astuple(new)
        return any(after < before for before, after in zip(here, there, strict=True))


@dataclass(frozen=True, kw_only=True)
class Strands:
    """A queue as it is deployed, looked at once, in its table and its SQS queues.

    `level` returns the SQS queue of a priority.
    """

    queue: QueueSettings
    table: Table
    level: Callable[[int], Queue]
    now: datetime
    spread: Spread = map

    def by_deletion(self) -> list[str]:
        """Return what would be stranded without the queue, in what it gave up before as well.

        Raises Throttled or Unavailable, as all of them do.
        """
        lasting = [each for each in self._schedules if each.is_live and not each.is_declared]
        jobs = self._jobs([*self._partitions(0), *self._given_up()], but_of=self._declared)
        messages = self._messages("in its SQS queues", range(1, MAX_PRIORITY + 1))
        return list(filter(None, [jobs, _counted(lasting), messages]))

    def by_change(self, old: Shape, new: Shape) -> list[str]:
        """Return what would be stranded by a change. A shorter retention of jobs is for new jobs alone."""
        return list(filter(None, self._found(old, new)))

    def _found(self, old: Shape, new: Shape) -> Iterator[str]:
        if new.partitions < old.partitions:
            where = f" in partitions from {new.partitions} on"
            yield self._jobs(self._partitions(new.partitions), where=where)
            yield _counted([s for s in self._schedules if s.is_live and s.partition >= new.partitions], where=where)
        if new.priorities < old.priorities:
            least = new.priorities + 1
            where = f" of priorities from {least} on"
            yield self._jobs(self._partitions(0), where=where, least=least, but_of=self._declared)
            yield _counted([s for s in self._schedules if s.priority >= least and not s.is_declared], where=where)
            levels = range(least, self.queue.priorities + 1)
            yield self._messages(f"in the SQS queues of priorities from {least} on", levels)
        if new.message_days < old.message_days:
            where = f"in its SQS queues, which may be older than {new.message_days} days"
            yield self._messages(where, range(1, self.queue.priorities + 1), is_delayed_too=False)

    def _partitions(self, first: int) -> list[Partition]:
        return self.queue.all_partitions()[first:]

    def _given_up(self) -> list[Partition]:
        """Return the partitions that the queue had once: ticks have left their states."""
        others = replace(self.queue, partitions=MOST_PARTITIONS).all_partitions()[self.queue.partitions :]
        states = self._states(others).rows
        return [each for each in others if rows.state_key(each) in states]

    def _states(self, partitions: Sequence[Partition]) -> Reading:
        states = states_of(partitions, table=self.table, spread=self.spread)
        if states.unread:
            raise Unavailable(f"{len(states.unread)} states of queue {self.queue.name} could not be read: try again")
        return states

    @cached_property
    def _schedules(self) -> Sequence[Sketch]:
        found, after, more = list[Sketch](), "", True
        while more:
            page = self.table.heads(self.queue.name, after=after, limit=_HEADS_A_PAGE)
            found += filter(None, map(sketch_of, page.rows))
            more, after = page.more, str(page.rows[-1]["sk"]) if page.rows else after
        return found

    @property
    def _declared(self) -> Collection[str]:
        return {each.name for each in self._schedules if each.is_declared}

    def _jobs(
        self, partitions: Sequence[Partition], *, where: str = "", least: int = 1, but_of: Collection[str] = ()
    ) -> str:
        states = self._states(partitions).rows
        snapshot = Snapshot(
            queue=self.queue, table=self.table, states=states, now=self.now, partitions=tuple(partitions)
        )
        scanned = scan(Span(limit=MOST_COUNTED), snapshot=snapshot, spread=self.spread)
        counted = [row for row in scanned.rows if int(row.get("priority", 1)) >= least and _schedule(row) not in but_of]
        number, more = len(counted), scanned.after is not None
        if not number and not more:
            return ""
        if more and least > 1:
            return f"{number:,} or more of its jobs{where}, of which the first {MOST_COUNTED:,} alone were read"
        count = f"{number:,} or more jobs" if more else f"{number:,} job{'s' if number > 1 else ''}"
        return f"{count}{where}, due until {self._furthest(partitions)} at the latest"

    def _furthest(self, partitions: Sequence[Partition]) -> str:
        last = [row for row in self.spread(self.table.last, partitions) if row]
        due = [at for row in last if (at := rows.due_at(str(row["sk"])))]
        return instant.text(max(due)) if due else "now"

    def _messages(self, where: str, levels: range, *, is_delayed_too: bool = True) -> str:
        depths = list(self.spread(self._depth, levels))
        number = sum(each.waiting + each.in_flight + each.delayed * is_delayed_too for each in depths)
        return f"{number:,} message{'s' if number > 1 else ''} {where}" if number else ""

    def _depth(self, priority: int) -> Depth:
        try:
            return self.level(priority).depth()
        except QueueNotFound:
            return Depth(waiting=0, in_flight=0, delayed=0)


def _schedule(row: Row) -> str | None:
    """Return the name of the schedule that made a job, None if none did."""
    return nominal.fields(row.get("schedule")).get("schedule")


def _counted(schedules: Sequence[Sketch], *, where: str = "") -> str:
    number = len(schedules)
    return f"{number:,} schedule{'s' if number > 1 else ''}{where}" if number else ""
