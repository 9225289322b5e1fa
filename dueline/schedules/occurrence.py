"""Occurrences: the jobs that a schedule makes, one a nominal, and the planning jobs that have them made.

All are functions of the head of one generation: whoever makes one makes the same one.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from dueline.model.job import Job
from dueline.schedules.head import Head
from dueline.schedules.rule import Rule

STEP = timedelta(minutes=15)
# Of a run that is later than this, `catch_up` decides.
ON_TIME = timedelta(seconds=60)


def occurrence(head: Head, nominal: datetime) -> Job:
    """Return the job of a nominal: by the table's route, due at the nominal and the schedule's jitter.

    Its uid is the UUIDv5 of queue, schedule, generation and nominal.
    """
    raise NotImplementedError


def jitter(head: Head) -> timedelta:
    """Return by how much each run of a schedule is later than its nominal: the same whatever the generation."""
    raise NotImplementedError


def step(rule: Rule, planned_to: datetime) -> datetime:
    """Return up to where the step that begins at `planned_to` plans: 15 minutes on, or at the first nominal after it.

    It is the later of the two, and never depends on the clock.
    """
    raise NotImplementedError


def planning_job(head: Head, planned_from: datetime, *, now: datetime) -> Job | None:
    """Return the job that has the step from `planned_from` planned; None if no nominal follows.

    It is due 15 minutes before the first nominal after `planned_from`, and kept for a week from then or from now on.
    """
    raise NotImplementedError


def between(head: Head, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the nominals after `after`, up to `until`."""
    raise NotImplementedError


def to_submit(head: Head, after: datetime, until: datetime, *, now: datetime) -> list[datetime]:
    """Return which of these nominals get a job: those up to 60 s late or to come, and of others what catches up."""
    raise NotImplementedError
