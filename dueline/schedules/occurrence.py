"""Occurrences: the jobs that a schedule makes, one a nominal, and the planning jobs that have them made.

All are functions of the head of one generation: whoever makes one makes the same one.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile

from dueline.model import instant
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.queue_settings import PLANNER, QueueSettings
from dueline.model.routing import partition_of
from dueline.schedules.definition import Definition, Overlap
from dueline.schedules.head import Head
from dueline.schedules.rule import Rule

STEP = timedelta(minutes=15)
# The namespace of all uids that follow from what a schedule is.
_OF_SCHEDULES = uuid.UUID("8a4f2f0e-6f0c-5d0b-9d6e-3f5b5a1c7e21")
_PLANNER_PARTITION = Partition(queue=PLANNER.name, number=0)


def occurrence(head: Head, nominal: datetime) -> Job:
    """Return the job of a nominal: by the table's route, due at the nominal and the schedule's jitter.

    Its uid is the UUIDv5 of queue, schedule, generation and nominal.
    """
    id = occurrence_id(head, head.generation, head.definition, nominal)
    return Job(
        id=id,
        payload=head.definition.payload,
        expires=id.due + head.retention,
        tenant=head.definition.tenant,
        priority=head.definition.priority,
        schedule=head.name,
        nominal=nominal,
        exclusive=head.definition.overlap is Overlap.SKIP,
    )


def occurrence_id(head: Head, generation: int, definition: Definition, nominal: datetime) -> JobId:
    """Return the id of an occurrence of any generation of a schedule, of which that was the definition."""
    due = nominal + jitter(head.queue, head.name, definition)
    uid = _uid(head, generation, instant.text(nominal))
    return JobId(partition=head.partition, route=Route.TABLE, due=due, uid=uid)


def jitter(queue: str, name: str, definition: Definition) -> timedelta:
    """Return by how much each run of a schedule is later than its nominal: its own part of the definition's jitter.

    It is in whole milliseconds, and follows from the SHA-256 of queue and name.
    """
    digest = hashlib.sha256(f"{queue}/{name}".encode()).digest()
    window = definition.jitter // timedelta(milliseconds=1)
    return timedelta(milliseconds=int.from_bytes(digest[:8]) * window >> 64)


def step(rule: Rule, planned_to: datetime) -> datetime:
    """Return up to where the step that begins at `planned_to` plans: 15 minutes on, or at the first nominal after it.

    It is the later of the two, and never depends on the clock.
    """
    return max(planned_to + STEP, next(rule.after(planned_to), planned_to))


def planning_job(head: Head, planned_from: datetime, *, now: datetime) -> Job | None:
    """Return the job that has the step from `planned_from` planned; None if no nominal follows.

    It is due 15 minutes before the first nominal after `planned_from`, and kept for a week from then or from now on.
    """
    first = next(head.definition.rule.after(planned_from), None)
    if first is None:
        return None
    due, uid = first - STEP, _uid(head, head.generation, f"plan/{instant.text(planned_from)}")
    of_step = {"generation": head.generation, "from": instant.text(planned_from)}
    return Job(
        id=JobId(partition=_PLANNER_PARTITION, route=Route.TABLE, due=due, uid=uid),
        payload=json.dumps({"queue": head.queue, "schedule": head.name, **of_step}, separators=(",", ":")),
        expires=max(due, now) + PLANNER.retention,
        # One queue's schedules do not hold up another's: it is the message group.
        tenant=head.queue,
    )


def between(rule: Rule, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the nominals after `after`, up to `until`."""
    return takewhile(lambda nominal: nominal <= until, rule.after(after))


def partition_of_schedule(queue: QueueSettings, name: str) -> Partition:
    """Return the partition of all runs of a schedule that is created now."""
    return Partition(queue=queue.name, number=partition_of(f"{queue.name}/{name}", queue.partitions))


def _uid(head: Head, generation: int, what: str) -> str:
    return str(uuid.uuid5(_OF_SCHEDULES, f"{head.queue}/{head.name}/{generation}/{what}"))
