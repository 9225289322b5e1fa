"""Changes: create, change, pause, resume and delete schedules, each in one transaction.

Up to one instant, `effective_from`, the old rule serves; after it the new one: never both, never neither.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from dueline.errors import NotYet, ScheduleChanged, ScheduleNotFound
from dueline.model.nominal import checked_name
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Clock, Table
from dueline.protocol.table_route import TableRoute
from dueline.schedules.definition import Definition, check_of_queue
from dueline.schedules.ending import check_fires_after
from dueline.schedules.found import Found, find
from dueline.schedules.head import Head
from dueline.schedules.rule import Rule
from dueline.schedules.transaction import Transaction, Wish

# Others may change the same schedule meanwhile, and planners plan it: whoever is overtaken tries so often, and so long.
ATTEMPTS = 10
PATIENCE = timedelta(seconds=20)


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A schedule after a call: it serves as it is after `effective_from`.

    `is_changed` is False when it was as it was asked for already; `is_new` when there was none, or it had been deleted.
    """

    head: Head
    effective_from: datetime
    is_new: bool = False
    is_changed: bool = True


# Returns what is wished for in the place of a head; None if that is it already. Raises ScheduleNotFound.
_Ask = Callable[[Head | None], Wish | None]
_Check = Callable[[Rule], None]


class Changes:
    """Changes schedules. `route` takes jobs of their queue, and planning jobs, to the table.

    After Throttled or Unavailable a change may or may not be done: to ask again is safe, and tells. With `if_match`, an
    entity tag or several with commas between, a schedule that is not as it was when one of them was read is left alone:
    ScheduleChanged. "*" matches any, a weak tag (`W/"..."`) none.
    """

    def __init__(self, *, table: Table, route: TableRoute, clock: Clock, patience: timedelta = PATIENCE) -> None:
        self._table = table
        self._transaction = Transaction(table=table, route=route, clock=clock)
        self._clock = clock
        self._patience = patience

    def put(
        self,
        queue: QueueSettings,
        name: str,
        definition: Definition,
        *,
        if_match: str | None = None,
        only_new: bool = False,
        must_run: bool = False,
    ) -> Changed:
        """Create a schedule, or change it; an identical definition changes nothing. A paused one stays paused.

        With `only_new` it is created, or else ScheduleChanged. With `must_run`, a definition that changes something is
        refused if no run of it is to come. Raises InvalidSchedule, TooManySchedules, TooManyChanges, ScheduleChanged;
        Throttled or Unavailable.
        """
        check_of_queue(definition, queue)
        check = partial(check_fires_after, self._clock.now()) if must_run else _check_nothing
        ask = partial(_created if only_new else _defined, definition, queue, check)
        return self._run(queue.name, name, ask, if_match)

    def pause(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Have a schedule make no more runs. Raises ScheduleNotFound, ScheduleChanged; Throttled or Unavailable."""
        return self._run(queue, name, partial(_paused, queue, name, True), if_match)

    def resume(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Have a paused schedule make runs again; nothing is caught up. Raises as `pause` does."""
        return self._run(queue, name, partial(_paused, queue, name, False), if_match)

    def delete(self, queue: str, name: str, *, if_match: str | None = None) -> Changed:
        """Delete a schedule. Raises as `pause` does; of one that was deleted before, it returns when that was."""
        return self._run(queue, name, partial(_deleted, queue, name), if_match)

    def _run(self, queue: str, name: str, ask: _Ask, if_match: str | None) -> Changed:
        until = self._clock.monotonic() + self._patience.total_seconds()
        found = find(queue, checked_name(name), table=self._table)
        for _ in range(ATTEMPTS):
            wish, was = ask(found.head), found.head
            if was is not None and wish is None:
                return Changed(head=was, effective_from=was.start, is_changed=False)
            _check_match(if_match, was, what=f"schedule {queue}/{name}")
            head = self._try(found, name, wish, until=until) if wish and found.is_ready else None
            if head is not None:
                return Changed(head=head, effective_from=head.start, is_new=was is None or was.deleted)
            found = find(queue, name, table=self._table, fenced=was.partition if was else None)
        raise NotYet(f"schedule {queue}/{name} was changed by others at each of {ATTEMPTS} tries: try again")

    def _try(self, found: Found, name: str, wish: Wish, *, until: float) -> Head | None:
        if self._clock.monotonic() >= until:
            raise NotYet(f"out of time: schedule {name!r} was not changed")
        if wish.queue is not None and (found.head is None or found.head.deleted):
            found.check_room(wish.queue.name)
        if found.head is not None:
            return self._transaction.replace(found.head, wish, fence=found.fence, until=until)
        if wish.queue is None:
            return None
        return self._transaction.create(wish.queue, name, wish.definition, until=until)


def _check_nothing(_: Rule) -> None:
    """Take any rule: whoever rolls back a deployment may put one again that has ended since."""


def _defined(definition: Definition, queue: QueueSettings, check: _Check, head: Head | None) -> Wish | None:
    is_there = head is not None and not head.deleted
    if head is not None and is_there and head.definition == definition:
        return None
    check(definition.rule)
    return Wish(definition=definition, queue=queue, paused=head is not None and is_there and head.paused)


def _created(definition: Definition, queue: QueueSettings, check: _Check, head: Head | None) -> Wish | None:
    if head is not None and not head.deleted:
        what = f"schedule {queue.name}/{head.name} is there already, its etag {head.etag}"
        raise ScheduleChanged(f"{what}: without If-None-Match it is changed")
    return _defined(definition, queue, check, head)


def _paused(queue: str, name: str, paused: bool, head: Head | None) -> Wish | None:
    if head is None or head.deleted:
        raise not_found(queue, name)
    return None if head.paused is paused else Wish(definition=head.definition, paused=paused)


def _deleted(queue: str, name: str, head: Head | None) -> Wish | None:
    if head is None:
        raise not_found(queue, name)
    return None if head.deleted else Wish(definition=head.definition, paused=head.paused, deleted=True)


def not_found(queue: str, name: str) -> ScheduleNotFound:
    return ScheduleNotFound(f"queue {queue!r} has no schedule {name!r}")


def _check_match(if_match: str | None, head: Head | None, *, what: str) -> None:
    """Raise ScheduleChanged unless a schedule is as it was when its entity tag was read."""
    if if_match is None:
        return
    if head is None or head.deleted:
        raise ScheduleChanged(f"{what} is not there, and If-Match is {if_match!r}: leave that out to create it")
    # No tag of ours has a comma.
    if if_match.strip() != "*" and head.etag not in map(str.strip, if_match.split(",")):
        raise ScheduleChanged(f"{what} is {head.etag} now, and If-Match is {if_match!r}: read it again")
