"""The planner: one step of a schedule for each planning job.

Read the head; submit the occurrences of the step, then the next planning job; then say so in the head. A crash
anywhere repeats the same ids. Nothing is ever planned beyond the step that begins at `planned_to`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline.errors import RETRYABLE, DuelineError, InvalidJob, Unavailable
from dueline.model import instant
from dueline.model.job import Job
from dueline.model.rows import Row
from dueline.model.schedule_rows import head_key
from dueline.ports import Clock, Spread, Table
from dueline.protocol.table_route import TableRoute, read_all
from dueline.schedules.head import read_head
from dueline.schedules.plan_step import Asked, PlanStep, Received, Verdict, verdict_on

# Longer than any process can live that has begun what is waited for.
GIVEN_UP_AFTER = timedelta(hours=1)


@dataclass(kw_only=True, slots=True)
class Planned:
    """What became of planning jobs.

    `again` names the messages to put back, the sooner the less often they came; all others are done. `submitted` and
    `missed` count runs by queue, `dropped` planning jobs that waited for an hour in vain.
    """

    again: set[str] = field(default_factory=set)
    submitted: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    faults: set[str] = field(default_factory=set)


class Planner:
    """Plans schedules. `route` takes jobs of their queues, and planning jobs, to the table."""

    def __init__(self, *, table: Table, route: TableRoute, clock: Clock, spread: Spread = map) -> None:
        self._table = table
        self._route = route
        self._clock = clock
        self._spread = spread

    def run(self, batch: Sequence[Received], *, until: float) -> Planned:
        """Plan a step for each planning job; begin no send after `until` (monotonic).

        The steps of a batch go on together, each in its order: one that fails holds up no other.
        """
        return _Batch(self._table, self._route, self._spread, now=self._clock.now(), until=until).run(batch)


class _Batch:
    """The steps of one batch, under way."""

    def __init__(self, table: Table, route: TableRoute, spread: Spread, *, now: datetime, until: float) -> None:
        self._table = table
        self._route = route
        self._spread = spread
        self._now = now
        self._until = until
        self._planned = Planned()

    def run(self, batch: Sequence[Received]) -> Planned:
        steps = self._steps([asked for received in batch if (asked := self._read(received))])
        steps = self._submit(steps, lambda step: step.occurrences)
        steps = self._submit(steps, lambda step: [step.following] if step.following else [])
        for step, is_noted in zip(steps, self._spread(self._note, steps), strict=True):
            if is_noted:
                self._planned.submitted[step.asked.queue] += len(step.occurrences)
                self._planned.missed[step.asked.queue] += step.missed
        return self._planned

    def _read(self, received: Received) -> Asked | None:
        try:
            return Asked.of(received)
        except InvalidJob as error:
            self._put_back(received, str(error))
        return None

    def _steps(self, batch: Sequence[Asked]) -> list[PlanStep]:
        """Return the steps that are to be done."""
        keys = [head_key(asked.queue, asked.schedule) for asked in batch]
        heads = read_all(set(keys), table=self._table, spread=self._spread, note=self._fault)
        steps = []
        for asked, key in zip(batch, keys, strict=True):
            if key in heads.unread:
                self._put_back(asked.received, f"schedule {key} was left unread")
            elif step := self._step(asked, heads.rows.get(key)):
                steps.append(step)
        return steps

    def _step(self, asked: Asked, row: Row | None) -> PlanStep | None:
        try:
            head = None if row is None else read_head(row)
        except Unavailable as error:
            self._put_back(asked.received, str(error))
            return None
        verdict = verdict_on(asked, head)
        if verdict is Verdict.WAIT:
            self._wait(asked.received)
        return PlanStep.of(asked, head, now=self._now) if head and verdict is Verdict.PLAN else None

    def _submit(self, steps: Sequence[PlanStep], jobs_of: Callable[[PlanStep], Sequence[Job]]) -> list[PlanStep]:
        """Submit jobs of steps; return the steps of which all are submitted."""
        jobs = {job for step in steps for job in jobs_of(step)}
        if not jobs:
            return list(steps)
        taken = self._route.take(jobs, until=self._until)
        done = []
        for step in steps:
            if taken.undone.isdisjoint(jobs_of(step)):
                done.append(step)
            else:
                self._put_back(step.asked.received, *taken.faults)
        return done

    def _note(self, step: PlanStep) -> bool:
        """Set how far a schedule is planned, last of all; tell whether that was for this step to do."""
        asked = step.asked
        try:
            return self._table.plan(
                head_key(asked.queue, asked.schedule),
                generation=asked.generation,
                planned_to=instant.text(asked.planned_from),
                to=instant.text(step.planned_to),
            )
        except RETRYABLE as fault:
            self._put_back(asked.received, str(fault))
            return False

    def _wait(self, received: Received) -> None:
        if self._now - received.first_received < GIVEN_UP_AFTER:
            self._put_back(received)
        else:
            self._planned.dropped += 1

    def _put_back(self, received: Received, *faults: str) -> None:
        self._planned.again.add(received.message_id)
        self._planned.faults.update(faults)

    def _fault(self, fault: DuelineError) -> None:
        self._planned.faults.add(str(fault))
