"""Transaction: put one generation of a schedule in the place of another, both or neither.

What must be there before it, is written before it: the planning job of the new generation, which waits for that; the
runs of the old one up to the cut, if its planner is late; and what tells ticks to ask for the cancellations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dueline.errors import Unavailable
from dueline.model import instant, rows
from dueline.model.job import JobId
from dueline.model.move_rows import asked_row
from dueline.model.queue_settings import QueueSettings
from dueline.model.schedule_rows import Change, count_key
from dueline.ports import WRITE_ROWS, Clock, Table
from dueline.protocol.table_route import TableRoute
from dueline.schedules.cut import cancelled_by, check_changes, cut_of, resumed_at
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head, head_row
from dueline.schedules.missed import to_submit
from dueline.schedules.occurrence import occurrence, partition_of_schedule, planning_job
from dueline.schedules.submitting import submit

# A fence is in whole milliseconds.
_INSTANT = timedelta(milliseconds=1)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a schedule is to be. `queue` is given with a definition that is new."""

    definition: Definition
    queue: QueueSettings | None = None
    paused: bool = False
    deleted: bool = False

    @property
    def is_live(self) -> bool:
        """Tell whether it is to make runs."""
        return not (self.paused or self.deleted)


class Transaction:
    """Makes what is wished for of a schedule. `route` takes jobs of its queue, and planning jobs, to the table."""

    def __init__(self, *, table: Table, route: TableRoute, clock: Clock) -> None:
        self._table = table
        self._route = route
        self._clock = clock

    def create(self, queue: QueueSettings, name: str, definition: Definition, *, until: float) -> Head | None:
        """Return the first head of a schedule, which serves from now on, or None if there is one by now.

        Begins no send after `until` (monotonic). Raises Throttled or Unavailable.
        """
        now = instant.round_up(self._clock.now())
        head = Head(
            queue=queue.name,
            name=name,
            definition=definition,
            generation=1,
            start=now,
            partition=partition_of_schedule(queue, name),
            planned_to=now,
            retention=queue.retention,
        )
        self._submit_intent(head, now=now, until=until)
        change = Change(head=head_row(head), generation=0, planned_to="", counter=count_key(queue.name), counted=1)
        return head if self._table.change(change) else None

    def replace(self, head: Head, wish: Wish, *, fence: datetime | None, until: float) -> Head | None:
        """Return the next head, or None if the fence, read before, or the head is no longer as it was.

        Then nothing was changed. Begins no send after `until` (monotonic). Raises TooManyChanges, and then nothing was
        written; Throttled or Unavailable.
        """
        now = self._clock.now()
        new = _next(head, wish, fence=fence, now=now)
        cut = new.start
        self._submit_intent(new, now=now, until=until)
        self._plan_up_to(cut, head, now=now, until=until)
        ended = cancelled_by(head, cut, next_is_live=new.is_live)
        new = replace(new, used_to=max([id.due for id in ended] + [head.used_to or cut]))
        self._have_ticks_ask(ended, now=now)
        change = Change(
            head=head_row(new),
            generation=head.generation,
            planned_to=instant.text(head.planned_to),
            state=rows.state_key(head.partition),
            fence_below=instant.text(cut + _INSTANT),
            cancellations=[{**rows.cancellation_row(id, at=now), "exact": True} for id in ended],
            counter=count_key(head.queue),
            counted=int(head.deleted) - int(new.deleted),
        )
        return new if self._table.change(change) else None

    def _submit_intent(self, head: Head, *, now: datetime, until: float) -> None:
        """Submit the planning job of a generation before there is one: it waits for that."""
        job = planning_job(head, head.planned_to, now=now) if head.is_live else None
        submit([job] if job else [], route=self._route, until=until)

    def _plan_up_to(self, cut: datetime, head: Head, *, now: datetime, until: float) -> None:
        """Submit the runs of a head up to the cut if its planner is late: after it, no planner does."""
        if head.is_live and head.planned_to < cut:
            late = to_submit(head, head.planned_to, cut, now=now)
            submit([occurrence(head, each) for each in late], route=self._route, until=until)

    def _have_ticks_ask(self, ended: Sequence[JobId], *, now: datetime) -> None:
        """Tell ticks and the late path to ask for these cancellations: they may not see them at once."""
        asks = [asked_row(id, at=now) for id in ended]
        for start in range(0, len(asks), WRITE_ROWS):
            if self._table.write(asks[start : start + WRITE_ROWS]):
                raise Unavailable("that runs are to be cancelled could not be written: try again")


def _next(head: Head, wish: Wish, *, fence: datetime | None, now: datetime) -> Head:
    is_resumed = wish.is_live and not head.is_live
    start = resumed_at(head, fence, now=now) if is_resumed else cut_of(head, fence)
    if wish.is_live:
        check_changes(head, start)
    retention = head.retention if wish.queue is None else wish.queue.retention
    return head.next(
        definition=wish.definition, start=start, paused=wish.paused, deleted=wish.deleted, retention=retention
    )
