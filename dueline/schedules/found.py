"""Found: a schedule as its rows say, read in the order that a change relies on."""

from dataclasses import dataclass
from datetime import datetime

from dueline.errors import TooManySchedules, Unavailable
from dueline.model import instant, rows
from dueline.model.job import Partition
from dueline.model.rows import Row
from dueline.model.schedule_rows import MOST_SCHEDULES, count_key, head_key
from dueline.ports import Table
from dueline.schedules.head import Head, read_head


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A schedule's head, if there is one, and how many schedules its queue has.

    `fenced` is the partition whose fence was read before the head: `fence`, None where it has none.
    """

    head: Head | None
    count: int
    fenced: Partition | None = None
    fence: datetime | None = None

    @property
    def is_ready(self) -> bool:
        """Tell whether a change can begin: what is there has its fence read before it, or nothing is there."""
        return self.head is None or self.head.partition == self.fenced

    def check_room(self, queue: str) -> None:
        """Raise TooManySchedules unless the queue may have one more."""
        if self.count >= MOST_SCHEDULES:
            reason = f"queue {queue!r} has {self.count} schedules: it may have {MOST_SCHEDULES}, delete some"
            raise TooManySchedules(reason)


def find(queue: str, name: str, *, table: Table, fenced: Partition | None = None) -> Found:
    """Read the fence of a partition, and then the head, both consistently. Raises Throttled or Unavailable.

    In the other order a planner might plan, and ticks send, between the two, what neither rule then counts as its own.
    """
    fence = None if fenced is None else _fence(fenced, table)
    of_head, of_count = head_key(queue, name), count_key(queue)
    reading = table.read([of_head, of_count])
    if reading.unread:
        raise Unavailable(f"schedule {queue}/{name} could not be read: try again")
    row, count = reading.rows.get(of_head), int(reading.rows.get(of_count, {}).get("count", 0))
    if fenced is not None and row is not None and not _is_latest(row, table):
        fenced = None
    return Found(head=None if row is None else read_head(row), count=count, fenced=fenced, fence=fence)


def _is_latest(row: Row, table: Table) -> bool:
    """Tell whether a head is the latest, by a conditional write that changes nothing.

    A read may show a head of before a transaction that is not answered yet, though the fence, read first, is past that
    one's cut. This waits until the transaction is over, or raises Throttled.
    """
    planned_to = str(row["planned_to"])
    return table.plan(rows.key(row), generation=int(row["generation"]), planned_to=planned_to, to=planned_to)


def _fence(partition: Partition, table: Table) -> datetime | None:
    key = rows.state_key(partition)
    reading = table.read([key])
    if reading.unread:
        raise Unavailable(f"the state of {partition} could not be read: try again")
    fence = rows.read_state(reading.rows.get(key)).fence
    return instant.parse(fence) if fence else None
