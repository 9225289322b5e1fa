"""Queries: which schedules a queue has, and what became of their runs."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import islice, takewhile

from dueline.core import instant
from dueline.core.job import JobId, State, checked_schedule_name
from dueline.core.ports import Clock, ParallelMap, Table
from dueline.core.queue_settings import QueueSettings
from dueline.core.status import JobStatus, Outcome, statuses_of
from dueline.errors import DuelineError, JobNotFound
from dueline.schedules.changes import existing, find
from dueline.schedules.head import Head, occurrence_id, readable_heads
from dueline.schedules.rule import MOMENT


class RunState(StrEnum):
    """What became of a run. Only queues that `track` have RUNNING, SUCCEEDED and FAILED.

    MISSED: it was planned, by the head, and has no row, which each run gets first and keeps for its retention: so no
    job was made of it, other than by a backfill. FORGOTTEN: it is past its retention.
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


# The others are called as a job's.
_STATES = {State.SCHEDULED: RunState.PLANNED, State.CANCEL_REQUESTED: RunState.CANCELLED}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """A run of a schedule. `lateness` is in seconds from due to the start of the last attempt, where that is known."""

    id: JobId
    scheduled_for: datetime
    generation: int
    state: RunState
    outcome: Outcome | None = None
    lateness: float | None = None


@dataclass(frozen=True, kw_only=True)
class ScheduleList:
    """Schedules in the order of their names, and the name after which the next page begins; None after the last.

    `unreadable` counts the schedules among them that cannot be read.
    """

    heads: tuple[Head, ...]
    after: str | None
    unreadable: int = 0


def get(queue: str, name: str, *, table: Table) -> Head:
    """Return a schedule, read consistently. Raises ScheduleNotFound; Throttled or Unavailable."""
    return existing(queue, name, find(queue, checked_schedule_name(name), table=table).head)


def page(queue: str, *, table: Table, after: str = "", limit: int = 20) -> ScheduleList:
    """List a queue's schedules, `limit` of them. A page may hold fewer, even none: the end is where `after` is None.

    A schedule whose row cannot be read is counted and logged. Raises Throttled or Unavailable.
    """
    page_of_rows = table.heads(queue, after=after, limit=limit)
    heads, unreadable = readable_heads(page_of_rows.rows)
    last = str(page_of_rows.rows[-1]["sk"]) if page_of_rows.rows and page_of_rows.more else None
    return ScheduleList(heads=tuple(head for head in heads if not head.deleted), after=last, unreadable=unreadable)


def history(
    queue: QueueSettings,
    name: str,
    *,
    table: Table,
    clock: Clock,
    until: float,
    limit: int = 20,
    before: datetime | None = None,
    spread: ParallelMap = map,
) -> list[RunRecord]:
    """Return the runs of a schedule whose time has come, by its rules, the latest first, `limit` of them.

    With `before`, those scheduled before it: a page goes on behind the last run of the one before; an instant that
    is to come adds those that are planned by now. They go back over the last 20 changes. What a change cancelled is
    no run. Raises ScheduleNotFound, Throttled or Unavailable.
    """
    head = get(queue.name, name, table=table)
    # Runs are at whole seconds, from 1970 on.
    latest = clock.now() if before is None else max(before, instant.EPOCH) - MOMENT
    planned = list(islice(_planned_runs(head, latest), limit))
    ids = [run.id for run, _ in planned]
    statuses = statuses_of(ids, queue=queue, table=table, clock=clock, until=until, spread=spread)
    now = clock.now()
    return [_record(run, statuses[run.id], is_kept=now < expires) for run, expires in planned]


def _planned_runs(head: Head, latest: datetime) -> Iterator[tuple[RunRecord, datetime]]:
    """Yield the runs of all generations that were planned, from `latest` back, and until when their jobs are kept."""
    for each in (head, *head.generations):
        if each.is_live:
            times = each.definition.rule.before(min(each.planned_to, latest))
            for at in takewhile(partial(operator.lt, each.start), times):
                id = occurrence_id(head, at, past=each)
                run = RunRecord(id=id, scheduled_for=at, generation=each.generation, state=RunState.PLANNED)
                yield run, id.due + each.retention


def _record(run: RunRecord, result: JobStatus | DuelineError, *, is_kept: bool) -> RunRecord:
    if isinstance(result, JobNotFound):
        return replace(run, state=RunState.FORGOTTEN)
    if isinstance(result, DuelineError):
        raise result
    _, status = result
    if status.state is State.UNRECORDED:
        return replace(run, state=RunState.MISSED if is_kept else RunState.FORGOTTEN)
    state = _STATES.get(status.state) or RunState(status.state.value)
    lateness = (status.outcome.started - run.id.due).total_seconds() if status.outcome else None
    return replace(run, state=state, outcome=status.outcome, lateness=lateness)
