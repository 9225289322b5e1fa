"""Reading: what schedules there are, and what became of their runs."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import islice, takewhile
from typing import Any

from dueline.errors import DuelineError, InvalidSchedule, JobNotFound
from dueline.lookup.outcome import Outcome
from dueline.lookup.status import Status, statuses_of
from dueline.model import instant
from dueline.model.job import JobId, State
from dueline.model.nominal import checked_name
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Clock, Spread, Table
from dueline.schedules.changes import not_found
from dueline.schedules.found import find
from dueline.schedules.head import Head, read_head
from dueline.schedules.occurrence import occurrence_id

MOST_HEADS = 100
MOST_RUNS = 100
_MOMENT = timedelta(microseconds=1)


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


# The others are called as a job's. A job that has no row by now was never made.
_STATES = {
    State.SCHEDULED: RunState.PLANNED,
    State.CANCEL_REQUESTED: RunState.CANCELLED,
    State.ACCEPTED: RunState.MISSED,
}


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
    """Return the runs of a schedule whose time has come, by its rules, the latest first, 1 to 100 of them.

    With `before`, those of nominals before it: a page goes on behind the last run of the one before; an instant that is
    to come has those told, too, that are planned by now. They go back over the last 20 changes. What a change cancelled
    is no run. Raises ScheduleNotFound, InvalidSchedule, Throttled or Unavailable.
    """
    _check_limit(limit, most=MOST_RUNS)
    head = get(queue.name, name, table=table)
    # Nominals are whole seconds. No rule names an instant before 1970.
    latest = clock.now() if before is None else max(before, instant.EPOCH) - _MOMENT
    named = list(islice(_named(head, latest), limit))
    statuses = statuses_of(
        [each.id for each in named], queue=queue, table=table, clock=clock, until=until, spread=spread
    )
    now = clock.now()
    return [_run(each, statuses[each.id], kept=now < each.id.due + head.retention) for each in named]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Named:
    """A nominal that a generation of a schedule names, and the id of its job."""

    nominal: datetime
    generation: int
    id: JobId


def _named(head: Head, latest: datetime) -> Iterator[_Named]:
    """Yield the nominals of all generations that were planned, from `latest` back."""
    for each in (head.up_to(head.planned_to), *head.generations):
        if each.is_live:
            nominals = takewhile(partial(operator.lt, each.start), each.definition.rule.before(min(each.end, latest)))
            yield from (
                _Named(
                    nominal=nominal,
                    generation=each.number,
                    id=occurrence_id(head, each.number, each.definition, nominal),
                )
                for nominal in nominals
            )


def _run(named: _Named, status: Status | DuelineError, *, kept: bool) -> Run:
    told: dict[str, Any] = {"id": named.id, "nominal": named.nominal, "generation": named.generation}
    if isinstance(status, JobNotFound):
        return Run(**told, state=RunState.FORGOTTEN)
    if isinstance(status, DuelineError):
        raise status
    state = _STATES.get(status.state) or RunState(status.state.value)
    if status.state is State.ACCEPTED:
        state = RunState.MISSED if kept else RunState.FORGOTTEN
    lateness = (status.outcome.started - named.id.due).total_seconds() if status.outcome else None
    return Run(**told, state=state, outcome=status.outcome, lateness=lateness)


def _check_limit(limit: int, *, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidSchedule(f"limit is {limit}: it must be from 1 to {most}")
