"""The difference between schedules as they are and as a file has them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dueline.client.schedule_answers import Schedule
from dueline.model.request import json_text
from dueline.schedules.definition import CatchUp, Definition, Overlap
from dueline.schedules.rule import Rule

_OF_RULE = ("cron", "every", "zone", "start", "end", "count")
# Shown by its name alone: a log may keep what is shown.
_PAYLOAD = "payload"
_OF_JOBS = ("tenant", "priority", "jitter", "owner", "description")


class Action(Enum):
    """What is to be done with a schedule."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    LEAVE = "leave"
    SAME = "same"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What is to be done with one schedule, so that it is as `wanted`: None is that it is not there."""

    queue: str
    name: str
    action: Action
    wanted: Definition | None
    found: Schedule | None

    @property
    def changes(self) -> dict[str, tuple[object, object]]:
        """What each field is, and what it is to be; None where it is as by default."""
        was = _definition(self.found).to_dict() if self.found else {}
        will = self.wanted.to_dict() if self.wanted else {}
        names = [*was, *(name for name in will if name not in was)]
        return {name: (was.get(name), will.get(name)) for name in names if was.get(name) != will.get(name)}

    @property
    def told(self) -> str:
        """What it comes to, for people."""
        if self.wanted is None:
            return "is not in the file"
        if self.found is None:
            return self.wanted.rule.words
        return ", ".join(
            _PAYLOAD if name == _PAYLOAD else f"{name}: {_text(old)} → {_text(new)}"
            for name, (old, new) in self.changes.items()
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The same for machines."""
        changes = self.changes if self.action is Action.CHANGE else {}
        told = {name: {} if name == _PAYLOAD else {"from": old, "to": new} for name, (old, new) in changes.items()}
        fields = {"queue": self.queue, "schedule": self.name, "action": self.action.value}
        return fields | ({"changes": told} if told else {})

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the client's `put`."""
        definition = self.wanted
        if definition is None:
            return {}
        of_rule = {name: getattr(definition.rule, name) for name in _OF_RULE}
        own = {name: getattr(definition, name) for name in (*_OF_JOBS, "catch_up", "overlap")}
        return {**of_rule, **own, "payload": json.loads(definition.payload)}


def steps_of(
    queue: str, wanted: Mapping[str, Definition], found: Sequence[Schedule], *, owner: str, prune: bool
) -> Iterator[Step]:
    """Yield what is to be done with each schedule of a queue that is wanted, and with those of `owner` that are not."""
    by_name = {schedule.name: schedule for schedule in found}
    for name, definition in wanted.items():
        schedule = by_name.get(name)
        if schedule is None:
            action = Action.CREATE
        else:
            action = Action.SAME if _definition(schedule) == definition else Action.CHANGE
        yield Step(queue=queue, name=name, action=action, wanted=definition, found=schedule)
    for schedule in found:
        if schedule.owner == owner and schedule.name not in wanted:
            action = Action.DELETE if prune else Action.LEAVE
            yield Step(queue=queue, name=schedule.name, action=action, wanted=None, found=schedule)


def _definition(schedule: Schedule) -> Definition:
    rule = Rule(**{name: getattr(schedule, name) for name in _OF_RULE})
    given: dict[str, Any] = {name: getattr(schedule, name) for name in _OF_JOBS}
    given |= {"catch_up": CatchUp(schedule.catch_up), "overlap": Overlap(schedule.overlap)}
    return Definition(rule=rule, payload=json_text(schedule.payload), **given)


def _text(value: object) -> str:
    return "default" if value is None else str(value)
