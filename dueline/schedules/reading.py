"""Reading: what schedules there are, and what became of their runs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dueline.errors import InvalidSchedule
from dueline.lookup.outcome import Outcome
from dueline.model.job import JobId
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Clock, Spread, Table
from dueline.schedules.changes import not_found
from dueline.schedules.definition import checked_name
from dueline.schedules.found import find
from dueline.schedules.head import Head, read_head

MOST_HEADS = 100
MOST_RUNS = 100


class RunState(StrEnum):
    """What became of a run. Only queues that `track` have RUNNING, SUCCEEDED and FAILED.

    MISSED: it was not caught up. FORGOTTEN: it is past its retention.
    """

    PLANNED = "planned"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    PARKED = "parked"
    MISSED = "missed"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run of a schedule. `lateness` is in seconds from due to the start of the last attempt, where that is known."""

    id: JobId
    nominal: datetime
    generation: int
    state: RunState
    outcome: Outcome | None = None
    lateness: float | None = None


@dataclass(frozen=True, kw_only=True)
class Listed:
    """Schedules in the order of their names, and the name after which the next page begins; None after the last."""

    heads: tuple[Head, ...]
    after: str | None


def get(queue: str, name: str, *, table: Table) -> Head:
    """Return a schedule, read consistently. Raises ScheduleNotFound; Throttled or Unavailable."""
    head = find(queue, checked_name(name), table=table).head
    if head is None or head.deleted:
        raise not_found(queue, name)
    return head


def page(queue: str, *, table: Table, after: str = "", limit: int = 20) -> Listed:
    """List a queue's schedules, 1 to 100 of them. A page may hold fewer, even none: the end is where `after` is None.

    Raises InvalidSchedule when `limit` is not from 1 to 100; Throttled or Unavailable.
    """
    _check_limit(limit, most=MOST_HEADS)
    found = table.heads(queue, after=after, limit=limit)
    heads = [read_head(row) for row in found.rows]
    last = heads[-1].name if heads and found.more else None
    return Listed(heads=tuple(head for head in heads if not head.deleted), after=last)


def history(
    queue: QueueSettings,
    name: str,
    *,
    table: Table,
    clock: Clock,
    until: float,
    limit: int = 20,
    before: datetime | None = None,
    spread: Spread = map,
) -> list[Run]:
    """Return the last runs of a schedule by its rules, the latest first, 1 to 100 of them, with nominals < `before`.

    They begin with those that are planned already, and go back over the last 20 changes. What was cancelled by a change
    is no run. Raises ScheduleNotFound, InvalidSchedule, Throttled or Unavailable.
    """
    raise NotImplementedError


def _check_limit(limit: int, *, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidSchedule(f"limit is {limit}: it must be from 1 to {most}")
