"""The planner: one step of a schedule for each planning job.

Read the head; submit the occurrences of the step, then the next planning job; then say so in the head. A crash
anywhere repeats the same ids. Nothing is ever planned beyond the step that begins at `planned_to`.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import islice

from dueline.core import instant
from dueline.core.job import StoredJob, checked_schedule_name, queue_name
from dueline.core.ports import read_all
from dueline.core.rows import Row, head_key, tzdata_key
from dueline.core.table_writer import TableWriter
from dueline.errors import RETRYABLE, DuelineError, Unavailable
from dueline.schedules import head as heads
from dueline.schedules.definition import CatchUp
from dueline.schedules.head import Head
from dueline.schedules.rule import tzdata_version

# Of a run that is later than this, `catch_up` decides.
ON_TIME = timedelta(seconds=60)
CAUGHT_UP = 100
CAUGHT_UP_WITHIN = timedelta(days=1)
# Longer than the process can live whose work a step waits for.
GIVEN_UP_AFTER = timedelta(hours=1)
PAGE = 100
# A planner may have a backlog. What it plans twice is the same.
GRACE_TICKS = 5
_NOTED = timedelta(days=400)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningMessage:
    """A message with a planning job, and when it was received for the first time."""

    message_id: str
    body: str
    first_received: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningRequest:
    """What a planning job requests: plan a generation of a schedule from an instant on."""

    message: PlanningMessage
    queue: str
    schedule: str
    generation: int
    planned_from: datetime


class Verdict(Enum):
    """Whether a step is to be done, was done or never will be, or has to wait."""

    PLAN = auto()
    DONE = auto()
    WAIT = auto()


def decide(request: PlanningRequest, head: Head | None) -> Verdict:
    """Decide on a step: by the generations first, for how far another one is planned says nothing of this one.

    A generation newer than the head's waits for its change to end; a later step, for the one before it.
    """
    if head is None or head.generation < request.generation:
        return Verdict.WAIT
    if head.generation > request.generation or not head.is_live or head.planned_to > request.planned_from:
        return Verdict.DONE
    return Verdict.PLAN if head.planned_to == request.planned_from else Verdict.WAIT


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """A step that is to be done: the jobs to submit, the planning job after them, and how far it plans."""

    request: PlanningRequest
    occurrences: Sequence[StoredJob]
    missed: int
    following: StoredJob | None
    planned_to: datetime


# Catch-up: which runs get a job although their time has passed, because no planner ran or ticks stalled.
def times_to_submit(head: Head, after: datetime, until: datetime, *, now: datetime) -> list[datetime]:
    """Return which times after `after`, up to `until`, get a job, in order.

    They are those up to 60 s late or to come, and of others those that are caught up. A year takes no longer than a
    day.
    """
    rule = head.definition.rule
    present = now - heads.jitter(head.queue, head.name, head.definition)
    in_time = present - ON_TIME - timedelta(milliseconds=1)
    caught_up = [at for at in _caught_up(head, present, in_time) if after < at <= until]
    return caught_up[::-1] + list(heads.between(rule, max(after, in_time), until))


def _caught_up(head: Head, present: datetime, in_time: datetime) -> list[datetime]:
    """Return the times up to `in_time` that are caught up, the latest first."""
    rule = head.definition.rule
    match head.definition.catch_up:
        case CatchUp.NONE:
            return []
        case CatchUp.LATEST:
            # Only if the one after it is still to come.
            return [at for at in islice(rule.before(present), 1) if at <= in_time]
        case CatchUp.ALL:
            earliest = present - CAUGHT_UP_WITHIN
            return [at for at in islice(rule.before(in_time), CAUGHT_UP) if at >= earliest]


@dataclass(kw_only=True, slots=True)
class Planned:
    """What became of planning jobs.

    `again` names the messages to put back, for longer the more often they were received; all others are done.
    `submitted` and `missed` count runs by queue, `dropped` planning jobs that waited for an hour in vain.
    """

    again: set[str] = field(default_factory=set)
    submitted: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    faults: set[str] = field(default_factory=set)


class Planner:
    """Plans schedules, once. `route` writes jobs of their queues, and planning jobs, to the table.

    No send starts after `until` (monotonic).
    """

    def __init__(self, route: TableWriter, *, until: float) -> None:
        self._route, self._table, self._spread = route, route.table, route.spread
        self._now, self._until = route.clock.now(), until
        self._planned = Planned()

    def run(self, batch: Sequence[PlanningMessage]) -> Planned:
        """Plan a step for each planning job.

        The steps go on together, each in its order: one that fails holds up no other.
        """
        steps = self._steps([request for message in batch if (request := self._parse(message))])
        steps = self._submit(steps, lambda step: step.occurrences)
        steps = self._submit(steps, lambda step: [step.following] if step.following else [])
        for plan, is_noted in zip(steps, self._spread(self._note, steps), strict=True):
            if is_noted:
                self._planned.submitted[plan.request.queue] += len(plan.occurrences)
                self._planned.missed[plan.request.queue] += plan.missed
        return self._planned

    def _parse(self, message: PlanningMessage) -> PlanningRequest | None:
        try:
            fields = json.loads(message.body)
            return PlanningRequest(
                message=message,
                queue=queue_name(fields["queue"]),
                schedule=checked_schedule_name(fields["schedule"]),
                generation=int(fields["generation"]),
                planned_from=instant.parse(fields["from"]),
            )
        except (DuelineError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
            reason = f"message {message.message_id} is no planning job: {type(error).__name__}: {error}"
            self._put_back(message, reason)
            return None

    def _steps(self, batch: Sequence[PlanningRequest]) -> list[PlanStep]:
        """Return the steps that are to be done."""
        keys = [head_key(request.queue, request.schedule) for request in batch]
        faults, steps = list[DuelineError](), []
        heads = read_all(set(keys), table=self._table, spread=self._spread, note=faults.append)
        self._planned.faults.update(map(str, faults))
        for request, key in zip(batch, keys, strict=True):
            if key in heads.unread:
                self._put_back(request.message, f"schedule {key} was left unread")
            elif step := self._step(request, heads.rows.get(key)):
                steps.append(step)
        return steps

    def _step(self, request: PlanningRequest, row: Row | None) -> PlanStep | None:
        try:
            head = None if row is None else heads.read_head(row)
        except Unavailable as error:
            self._put_back(request.message, str(error))
            return None
        verdict = decide(request, head)
        if verdict is Verdict.WAIT and self._now - request.message.first_received < GIVEN_UP_AFTER:
            self._put_back(request.message)
        elif verdict is Verdict.WAIT:
            self._planned.dropped += 1
        if head is None or verdict is not Verdict.PLAN:
            return None
        rule, start = head.definition.rule, request.planned_from
        end = heads.step(rule, start)
        times = times_to_submit(head, start, end, now=self._now)
        return PlanStep(
            request=request,
            occurrences=[heads.occurrence(head, at) for at in times],
            missed=sum(1 for _ in heads.between(rule, start, end)) - len(times),
            following=heads.planning_job(head, end, now=self._now),
            planned_to=end,
        )

    def _submit(self, steps: Sequence[PlanStep], jobs_of: Callable[[PlanStep], Sequence[StoredJob]]) -> list[PlanStep]:
        """Submit jobs of steps; return the steps of which all are submitted."""
        jobs = {job for step in steps for job in jobs_of(step)}
        if not jobs:
            return list(steps)
        written = self._route.write(jobs, until=self._until)
        done = []
        for plan in steps:
            if written.undone.isdisjoint(jobs_of(plan)):
                done.append(plan)
            else:
                self._put_back(plan.request.message, *written.faults)
        return done

    def _note(self, step: PlanStep) -> bool:
        """Set how far a schedule is planned, last of all; return False if another planner did."""
        request = step.request
        try:
            return self._table.plan(
                head_key(request.queue, request.schedule),
                generation=request.generation,
                planned_to=instant.text(request.planned_from),
                to=instant.text(step.planned_to),
            )
        except RETRYABLE as fault:
            self._put_back(request.message, str(fault))
            return False

    def _put_back(self, message: PlanningMessage, *faults: str) -> None:
        self._planned.again.add(message.message_id)
        self._planned.faults.update(faults)


class Watchdog:
    """Submits the planning jobs of stalled schedules. `route` writes them to the table.

    A schedule stalls only when its planning job is lost: it waited for an hour in vain, or went to the dead-letter
    queue. One is stalled whose planning job should have come five times `tick_period` ago. A planning job is due by the
    time zones of when it was made, so with a newer `tzdata`, by default that in use, all are submitted again.
    """

    def __init__(self, route: TableWriter, *, tick_period: timedelta, tzdata: str | None = None) -> None:
        self._route, self._table, self._clock = route, route.table, route.clock
        self._grace = GRACE_TICKS * tick_period
        self._tzdata = tzdata

    def revive(self, queue: str, *, until: float) -> int:
        """Submit the planning job of each stalled schedule, or with a newer tzdata of all; count the stalled.

        All heads of the queue are read, page by page; one that cannot be read is logged and counted: its schedule is
        stalled until the row is repaired. No send starts after `until` (monotonic). Safe to repeat. Raises Throttled or
        Unavailable.
        """
        # Read when it is needed: a planner that starts imports no tzdata.
        version = self._tzdata or tzdata_version()
        stalled, is_replanned = 0, self._is_tzdata_noted(queue, version)
        for page in heads.head_pages(queue, table=self._table, limit=PAGE):
            now = self._clock.now()
            readable, unreadable = heads.readable_heads(page)
            live = [head for head in readable if head.is_live]
            jobs = [(head, job) for head in live if (job := heads.planning_job(head, head.planned_to, now=now))]
            overdue = [job for head, job in jobs if max(job.id.due, head.start) + self._grace < now]
            heads.submit(overdue if is_replanned else [job for _, job in jobs], route=self._route, until=until)
            stalled += len(overdue) + unreadable
        if not is_replanned:
            self._note_tzdata(queue, version)
        return stalled

    def _is_tzdata_noted(self, queue: str, version: str) -> bool:
        """Return whether all planning jobs of a queue are due by the tzdata in use."""
        key = tzdata_key(queue)
        row = self._table.read([key]).rows.get(key)
        return row is not None and row.get("version") == version

    def _note_tzdata(self, queue: str, version: str) -> None:
        pk, sk = tzdata_key(queue)
        ttl = int((self._clock.now() + _NOTED).timestamp())
        # Left unwritten, the next round submits them once more.
        self._table.write([{"pk": pk, "sk": sk, "version": version, "ttl": ttl}])
