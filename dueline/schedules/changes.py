"""Create, change, pause, resume and delete schedules: each change takes effect at one exact time, its cutover."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from dueline.core import instant, rows
from dueline.core.job import JobId, Partition, checked_schedule_name
from dueline.core.ports import WRITE_ROWS, ScheduleChange, Table
from dueline.core.queue_settings import QueueSettings
from dueline.core.rows import MOVE_PENDING, move_row
from dueline.core.table_writer import TableWriter
from dueline.core.text import shown
from dueline.errors import NotYet, ScheduleChanged, ScheduleNotFound, TooManyChanges, TooManySchedules, Unavailable
from dueline.schedules import head as heads
from dueline.schedules.definition import Definition, check_fires, check_of_queue
from dueline.schedules.head import Generation, Head
from dueline.schedules.planner import times_to_submit
from dueline.schedules.rule import SECOND

# Others may change the same schedule at once, and planners plan it.
ATTEMPTS = 10
PATIENCE = timedelta(seconds=20)
# The rest is left for what jitter delays: of each generation less than two runs, three where the clock is changed.
_MOST = rows.CHANGE_CANCELLATIONS - 5 - 2 * heads.KEPT_GENERATIONS


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A schedule after a call.

    `is_changed` is False when it already was as requested; `is_new` when there was none, or it had been deleted.
    """

    head: Head
    is_new: bool = False
    is_changed: bool = True


class Changes:
    """Changes schedules. `route` writes jobs of their queue, and planning jobs, to the table.

    After Throttled or Unavailable a change may or may not be done: the same call again is safe, and says. With
    `if_match`, a schedule that is not as it was when that entity tag was read is left alone: ScheduleChanged. "*"
    matches any.
    """

    def __init__(self, route: TableWriter, *, patience: timedelta = PATIENCE) -> None:
        self._route, self._table, self._clock = route, route.table, route.clock
        self._patience = patience

    def put(
        self,
        queue: QueueSettings,
        name: str,
        definition: Definition,
        *,
        if_match: str | None = None,
    ) -> Changed:
        """Create a schedule, or change it; an identical definition changes nothing. A paused one stays paused.

        A definition that changes something is refused if no run of it is to come. Raises InvalidSchedule,
        TooManySchedules, TooManyChanges, ScheduleChanged; Throttled or Unavailable.
        """
        check_of_queue(definition, queue)
        return self._run(queue.name, name, {"definition": definition, "deleted": False}, if_match, settings=queue)

    def pause(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Have a schedule make no more runs. Raises ScheduleNotFound, ScheduleChanged; Throttled or Unavailable."""
        return self._run(queue, name, {"paused": True}, if_match)

    def resume(self, queue: QueueSettings, name: str, *, if_match: str | None = None) -> Changed:
        """Have a paused schedule make runs again; nothing is caught up. Raises as `pause` does."""
        return self._run(queue.name, name, {"paused": False}, if_match, settings=queue)

    def delete(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Delete a schedule. Raises as `pause` does; of one that was deleted before, it returns when that was."""
        return self._run(queue, name, {"deleted": True}, if_match)

    def _run(
        self,
        queue: str,
        name: str,
        desired: Mapping[str, Any],
        if_match: str | None,
        *,
        settings: QueueSettings | None = None,
    ) -> Changed:
        """Give a schedule the fields that are desired.

        `settings` are its queue's where that is to take runs of the schedule from now on.
        """
        until = self._clock.monotonic() + self._patience.total_seconds()
        stored = find(queue, checked_schedule_name(name), table=self._table)
        for _ in range(ATTEMPTS):
            was, fields = stored.head, _changing_fields(queue, name, stored.head, desired)
            if was is not None and not fields:
                return Changed(head=was, is_changed=False)
            if "definition" in desired:
                check_fires(desired["definition"].rule, after=self._clock.now())
            if if_match is not None and (was is None or was.deleted):
                missing = f"schedule {queue}/{name} does not exist, and If-Match is {shown(if_match, most=200)}"
                raise ScheduleChanged(f"{missing}: leave that out to create it")
            if was is not None and if_match not in (None, "*", was.etag):
                now = f"schedule {queue}/{name} is {was.etag} now"
                raise ScheduleChanged(f"{now}, and If-Match is {shown(if_match, most=200)}: read it again")
            head = self._try(stored, name, fields, settings, until=until) if stored.is_ready else None
            if head is not None:
                return Changed(head=head, is_new=was is None or was.deleted)
            stored = find(queue, name, table=self._table, fenced=was.partition if was else None)
        raise NotYet(f"schedule {queue}/{name} was changed by others at each of {ATTEMPTS} tries: try again")

    def _try(
        self, stored: "StoredSchedule", name: str, fields: dict[str, Any], queue: QueueSettings | None, *, until: float
    ) -> Head | None:
        if self._clock.monotonic() >= until:
            raise NotYet(f"out of time: schedule {name!r} was not changed")
        head = stored.head
        if queue is not None and (head is None or head.deleted) and stored.count >= rows.MOST_SCHEDULES:
            most = f"it may have {rows.MOST_SCHEDULES}, delete some"
            raise TooManySchedules(f"queue {queue.name!r} has {stored.count} schedules: {most}")
        if head is not None:
            return self._replace(head, fields, queue, fence=stored.fence, until=until)
        return None if queue is None else self._create(queue, name, fields["definition"], until=until)

    def _create(self, queue: QueueSettings, name: str, definition: Definition, *, until: float) -> Head | None:
        """Return the first head of a schedule, which serves from now on, or None if one exists by now."""
        now = instant.round_up(self._clock.now())
        head = Head(
            queue=queue.name,
            name=name,
            definition=definition,
            generation=1,
            start=now,
            partition=heads.partition_of_schedule(queue, name),
            planned_to=now,
            retention=queue.retention,
        )
        self._submit_planning_job(head, now=now, until=until)
        change = ScheduleChange(head=heads.head_row(head), generation=0, planned_to="", counted=1)
        return head if self._table.change(change) else None

    def _replace(
        self,
        head: Head,
        fields: dict[str, Any],
        queue: QueueSettings | None,
        *,
        fence: datetime | None,
        until: float,
    ) -> Head | None:
        """Return the next head, or None if the fence, read before, or the head is no longer as it was.

        Then nothing was changed. Raises TooManyChanges, and then nothing was written.
        """
        now = self._clock.now()
        desired = replace(head, **fields)
        is_resumed = desired.is_live and not head.is_live
        cutover = resume_time(head, fence, now=now) if is_resumed else cutover_of(head, fence)
        if desired.is_live:
            check_changes(head, cutover)
        if queue is not None:
            fields = fields | {"retention": queue.retention}
            if is_resumed and not queue.declares(head.partition):
                # No tick reads its own. Its earlier runs are over: the change that ended them cancelled what was left.
                fields |= {"partition": heads.partition_of_schedule(queue, head.name)}
        new = head.next(start=cutover, **fields)
        self._submit_planning_job(new, now=now, until=until)
        self._plan_up_to(cutover, head, now=now, until=until)
        ended = cancelled_by(head, cutover, next_is_live=new.is_live)
        new = replace(new, used_to=max([id.due for id in ended] + [head.used_to or cutover]))
        self._require_read_barriers(ended, now=now)
        change = ScheduleChange(
            head=heads.head_row(new),
            generation=head.generation,
            planned_to=instant.text(head.planned_to),
            state=rows.state_key(head.partition),
            # A fence is in whole milliseconds.
            fence_below=instant.text(cutover + timedelta(milliseconds=1)),
            cancellations=[{**rows.cancellation_row(id, at=now), "exact": True} for id in ended],
            counted=int(head.deleted) - int(new.deleted),
        )
        return new if self._table.change(change) else None

    def _submit_planning_job(self, head: Head, *, now: datetime, until: float) -> None:
        """Submit the planning job of a generation before the generation exists: the job waits for it."""
        job = heads.planning_job(head, head.planned_to, now=now) if head.is_live else None
        heads.submit([job] if job else [], route=self._route, until=until)

    def _plan_up_to(self, cutover: datetime, head: Head, *, now: datetime, until: float) -> None:
        """Submit the runs of a head up to the cutover if its planner is late: after it, no planner does."""
        if head.is_live and head.planned_to < cutover:
            late = times_to_submit(head, head.planned_to, cutover, now=now)
            heads.submit([heads.occurrence(head, each) for each in late], route=self._route, until=until)

    def _require_read_barriers(self, ended: Sequence[JobId], *, now: datetime) -> None:
        """Have ticks and the late path read these cancellations by a write: a plain read may not show them at once."""
        pending = [move_row(id, MOVE_PENDING, at=now) for id in ended]
        for start in range(0, len(pending), WRITE_ROWS):
            if self._table.write(pending[start : start + WRITE_ROWS]):
                raise Unavailable("that runs are to be cancelled could not be written: try again")


def existing(queue: str, name: str, head: Head | None) -> Head:
    """Return the head of a schedule. Raises ScheduleNotFound when there is none, or it was deleted."""
    if head is None or head.deleted:
        raise ScheduleNotFound(f"queue {queue!r} has no schedule {name!r}")
    return head


def _changing_fields(queue: str, name: str, head: Head | None, desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the desired fields that a head has not. Raises ScheduleNotFound unless they create the schedule."""
    if "definition" in desired:
        # A paused one stays paused, but if it was deleted since.
        desired = {**desired, "paused": head is not None and not head.deleted and head.paused}
    elif head is None or "deleted" not in desired:
        existing(queue, name, head)
    return {field: value for field, value in desired.items() if head is None or getattr(head, field) != value}


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredSchedule:
    """A schedule's head, if there is one, and how many schedules its queue has.

    A change can begin if it `is_ready`: there is no head, or it is the latest and its partition's `fence` was read
    before it, None where that has none.
    """

    head: Head | None
    count: int
    is_ready: bool
    fence: datetime | None


def find(queue: str, name: str, *, table: Table, fenced: Partition | None = None) -> StoredSchedule:
    """Read the fence of a partition, and then the head, both consistently.

    In the other order a planner might plan between the two, and ticks send, runs that neither rule counts as its own.
    """
    fence = None if fenced is None else _fence(fenced, table)
    of_head, of_count = rows.head_key(queue, name), rows.count_key(queue)
    existing = table.read([of_head, of_count]).whole(f"schedule {queue}/{name}")
    row, count = existing.get(of_head), int(existing.get(of_count, {}).get("count", 0))
    head = None if row is None else heads.read_head(row)
    is_ready = head is None or (head.partition == fenced and _is_latest(head, table))
    return StoredSchedule(head=head, count=count, is_ready=is_ready, fence=fence)


def _is_latest(head: Head, table: Table) -> bool:
    """Return whether a head is the latest, by a conditional write that changes nothing.

    A read may show the head from before a transaction that is not answered yet, though the fence, read first, is past
    that one's cutover. This waits until the transaction is over, or raises Throttled.
    """
    key, planned_to = rows.head_key(head.queue, head.name), instant.text(head.planned_to)
    return table.plan(key, generation=head.generation, planned_to=planned_to, to=planned_to)


def _fence(partition: Partition, table: Table) -> datetime | None:
    key = rows.state_key(partition)
    fence = rows.read_state(table.read([key]).whole(f"the state of {partition}").get(key)).fence
    return instant.parse(fence) if fence else None


# Cutover: the instant at which one generation of a schedule ends and the next begins, and what it cancels. For a head
# that makes runs all of it follows from the head and a fence, and from no clock: two processes have two clocks.
def cutover_of(head: Head, fence: datetime | None) -> datetime:
    """Return up to where a head serves when it is changed now.

    It is its partition's fence, but not before the head begins. Where ticks have stalled for so long that more jobs lie
    beyond it than one transaction can cancel, it is later.
    """
    cutover = head.start if fence is None else max(fence, head.start)
    beyond = _times_beyond(head, cutover, cutover=cutover)
    return beyond[-_MOST - 1] if len(beyond) > _MOST else cutover


def resume_time(head: Head, fence: datetime | None, *, now: datetime) -> datetime:
    """Return from when on a paused or deleted head makes runs again: from now on, or from its cutover if later.

    Where ticks have stalled the fence is in the past, and runs of the pause would be caught up. The clock may decide
    here: a pause has no runs of which two clocks could say different things.
    """
    return max(cutover_of(head, fence), instant.round_up(now))


def check_changes(head: Head, cutover: datetime) -> None:
    """Raise TooManyChanges if a change at a cutover drops a generation of which a run may be due after it.

    A later pause or delete could not cancel that run.
    """
    dropped = list(_uncancelled(head))[heads.KEPT_GENERATIONS - 1 :]
    delayed = [id for past in dropped for id in _delayed_of(past, head, cutover)]
    if not delayed:
        return
    was, since, until = dropped[0], instant.text(dropped[0].planned_to), instant.text(max(id.due for id in delayed))
    raise TooManyChanges(
        f"schedule {head.queue}/{head.name} was changed {heads.KEPT_GENERATIONS} times since {since}, and its jitter of"
        f" {was.definition.jitter // SECOND} s delays an earlier run to {until}: change it again from then on; a pause"
        " or delete goes at once"
    )


def cancelled_by(head: Head, cutover: datetime, *, next_is_live: bool) -> list[JobId]:
    """Return the runs of a head that end with it, whether their rows exist or not: planners may yet write them.

    If no runs follow, those that jitter delays beyond the cutover end, too, of this generation and those before it.
    """
    if not head.is_live:
        return []
    delay = timedelta(0) if next_is_live else heads.jitter(head.queue, head.name, head.definition)
    ended = [heads.occurrence(head, at).id for at in _times_beyond(head, cutover - delay, cutover=cutover)]
    delayed = [id for past in _uncancelled(head) for id in _delayed_of(past, head, cutover)]
    return ended if next_is_live else ended + delayed


def _uncancelled(head: Head) -> Iterator[Generation]:
    """Yield the earlier generations of a head, the latest first, back to a pause: that cancelled the runs before it."""
    return takewhile(lambda past: past.is_live, head.generations if head.is_live else ())


def _delayed_of(past: Generation, head: Head, cutover: datetime) -> Iterator[JobId]:
    """Yield the runs of an earlier generation that are due after a cutover."""
    since = max(past.start, cutover - heads.jitter(head.queue, head.name, past.definition))
    for at in heads.between(past.definition.rule, since, past.planned_to):
        yield heads.occurrence_id(head, at, past=past)


def _times_beyond(head: Head, after: datetime, *, cutover: datetime) -> list[datetime]:
    """Return the times after an instant whose runs planners may write, or a change that plans up to its cutover."""
    if not head.is_live:
        return []
    rule = head.definition.rule
    return list(heads.between(rule, after, max(cutover, heads.step(rule, head.planned_to))))
