"""One step of a schedule's plan: which planning job asks for it, whether it is to be done, and of what it consists."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Self

from dueline.errors import DuelineError, InvalidJob
from dueline.model import instant
from dueline.model.job import Job, queue_name
from dueline.model.message import Message
from dueline.model.nominal import checked_name
from dueline.schedules.head import Head
from dueline.schedules.missed import to_submit
from dueline.schedules.occurrence import between, occurrence, planning_job, step


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """A message with a planning job, and when it was received for the first time."""

    message_id: str
    message: Message
    first_received: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a planning job asks for: to plan a generation of a schedule from an instant on."""

    received: Received
    queue: str
    schedule: str
    generation: int
    planned_from: datetime

    @classmethod
    def of(cls, received: Received) -> Self:
        """Return what a message asks for. Raises InvalidJob when it is no planning job."""
        try:
            asked = json.loads(received.message.body)
            return cls(
                received=received,
                queue=queue_name(asked["queue"]),
                schedule=checked_name(asked["schedule"]),
                generation=int(asked["generation"]),
                planned_from=instant.parse(asked["from"]),
            )
        except (DuelineError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
            reason = f"message {received.message_id} is no planning job: {type(error).__name__}: {error}"
            raise InvalidJob(reason) from None


class Verdict(Enum):
    """Whether a step is to be done, was done or never will be, or has to wait."""

    PLAN = auto()
    DONE = auto()
    WAIT = auto()


def verdict_on(asked: Asked, head: Head | None) -> Verdict:
    """Decide on a step: by the generations first, for how far another one is planned says nothing of this one.

    A newer generation than the head's has its change still under way; a later step, the one before it.
    """
    if head is None or head.generation < asked.generation:
        return Verdict.WAIT
    if head.generation > asked.generation or not head.is_live or head.planned_to > asked.planned_from:
        return Verdict.DONE
    return Verdict.PLAN if head.planned_to == asked.planned_from else Verdict.WAIT


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """A step that is to be done: the jobs to submit, the planning job after them, and how far it plans."""

    asked: Asked
    occurrences: Sequence[Job]
    missed: int
    following: Job | None
    planned_to: datetime

    @classmethod
    def of(cls, asked: Asked, head: Head, *, now: datetime) -> Self:
        rule, start = head.definition.rule, asked.planned_from
        end = step(rule, start)
        nominals = to_submit(head, start, end, now=now)
        return cls(
            asked=asked,
            occurrences=[occurrence(head, nominal) for nominal in nominals],
            missed=sum(1 for _ in between(rule, start, end)) - len(nominals),
            following=planning_job(head, end, now=now),
            planned_to=end,
        )
