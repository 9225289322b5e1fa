"""A schedule's definition: when it runs, and what its jobs have."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from dueline.core import instant
from dueline.core.job import MAX_PAYLOAD_BYTES, check_kind, check_priority, check_tenant
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import FURTHEST, json_text
from dueline.core.rows import pack
from dueline.core.text import shown
from dueline.errors import InvalidJob, InvalidSchedule
from dueline.schedules.rule import FIRST, LAST, MOMENT, SECOND, Rule

MAX_PACKED_BYTES = 8 * 1024
MAX_LABEL_CHARACTERS = 200


class CatchUp(StrEnum):
    """Which missed runs are made: the latest, none, or all, the last 100 within a day."""

    LATEST = "latest"
    NONE = "none"
    ALL = "all"


class Overlap(StrEnum):
    """Whether a run starts while an earlier one of its schedule is under way, or is skipped."""

    ALLOW = "allow"
    SKIP = "skip"


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A schedule's rule and jobs. Each run has the same payload, kind, tenant and priority.

    The payload is a text as `json_text` writes it. All runs are due later than scheduled by the same part of `jitter`,
    which is in whole seconds. `owner` says who declared the schedule. Raises InvalidSchedule, which names the field.
    """

    rule: Rule
    payload: str = "null"
    kind: str | None = None
    tenant: str | None = None
    priority: int = 1
    jitter: timedelta = timedelta(0)
    catch_up: CatchUp = CatchUp.LATEST
    overlap: Overlap = Overlap.ALLOW
    owner: str | None = None

    def __post_init__(self) -> None:
        _check_payload(self.payload)
        with invalid_schedule():
            check_kind(self.kind)
            check_tenant(self.tenant)
            check_priority(self.priority)
        for name, kind in (("catch_up", CatchUp), ("overlap", Overlap)):
            value = getattr(self, name)
            if value not in [*kind]:
                raise InvalidSchedule(f"{name} is {shown(value)}: it must be {' or '.join(kind)}")
            object.__setattr__(self, name, kind(value))
        owner = self.owner
        if owner is not None and not (isinstance(owner, str) and 1 <= len(owner) <= MAX_LABEL_CHARACTERS):
            raise InvalidSchedule(f"owner is {shown(owner)}: it must have 1 to {MAX_LABEL_CHARACTERS} characters")
        _check_jitter(self.jitter, rule=self.rule)

    def json_fields(self) -> dict[str, Any]:
        """Return the fields of the rule and the definition as JSON has them, without those that are None."""
        values = {each.name: getattr(owner, each.name) for owner in (self.rule, self) for each in fields(owner)}
        return {name: _plain(values[name]) for name in _DEFAULTS if values[name] is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as JSON has it, without defaults."""
        return {name: value for name, value in self.json_fields().items() if value != _plain(_DEFAULTS[name])}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Definition":
        """Return the definition that a caller gave, with its payload as a JSON value.

        Raises InvalidSchedule, also when its rule names no instant.
        """
        definition = cls.from_row({**values, "payload": payload_text(values.get("payload"))})
        check_fires(definition.rule)
        return definition

    @classmethod
    def from_row(cls, values: Mapping[str, Any]) -> "Definition":
        """Return the definition that `to_dict` wrote. That it has runs was checked when it was put."""
        if unknown := sorted(values.keys() - _DEFAULTS.keys()):
            raise InvalidSchedule(f"{shown(unknown[0])} is no field of a schedule: there are {', '.join(_DEFAULTS)}")
        parsed: dict[str, Any] = {
            name: _PARSERS[name](name, value) if name in _PARSERS else value for name, value in values.items()
        }
        of_rule = {each.name: parsed.pop(each.name) for each in fields(Rule) if each.name in parsed}
        return cls(rule=Rule(**of_rule), **parsed)


@contextmanager
def invalid_schedule() -> Iterator[None]:
    """Raise InvalidSchedule in place of InvalidJob."""
    try:
        yield
    except InvalidJob as error:
        raise InvalidSchedule(str(error)) from None


def payload_text(payload: object) -> str:
    """Return a payload as a definition has it. Raises InvalidSchedule when it is no JSON value."""
    with invalid_schedule():
        return json_text(payload)


def check_of_queue(definition: Definition, queue: QueueSettings) -> None:
    """Raise InvalidSchedule unless the queue has the priority of a definition."""
    if definition.priority > queue.priorities:
        raise InvalidSchedule(f"priority is {definition.priority}: {queue.allowed_priorities}")


def _seconds(name: str, value: object) -> timedelta:
    with suppress(ValueError, OverflowError):
        seconds = instant.seconds(value)
        if isinstance(seconds, int) and not isinstance(seconds, bool):
            return timedelta(seconds=seconds)
    allowed = f"a number of whole seconds, or such as 15m, of {FURTHEST.days} days at most"
    raise InvalidSchedule(f"{name} is {shown(value)}: it must be {allowed}")


def _instant(name: str, value: object) -> datetime:
    try:
        return instant.parse(value if isinstance(value, str) else "")
    except ValueError:
        must = "it must be an instant in ISO 8601 with a zone, such as 2026-11-21T07:05:00Z"
        raise InvalidSchedule(f"{name} is {shown(value)}: {must}") from None


_DEFAULTS: Mapping[str, object] = {each.name: each.default for each in (*fields(Rule), *fields(Definition)[1:])}
_PARSERS: Mapping[str, Callable[[str, object], object]]
_PARSERS = {"every": _seconds, "start": _instant, "end": _instant, "jitter": _seconds}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, timedelta):
        return value // SECOND
    return instant.text(value) if isinstance(value, datetime) else value


def _check_payload(payload: str) -> None:
    packed = len(payload) if len(payload) <= MAX_PACKED_BYTES else len(pack(payload))
    if packed > MAX_PACKED_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        allowed = f"at most {MAX_PACKED_BYTES} are allowed, and {MAX_PAYLOAD_BYTES} before"
        raise InvalidSchedule(f"payload has {packed} bytes compressed, and {len(payload)} before: {allowed}")


def _check_jitter(jitter: object, *, rule: Rule) -> None:
    if jitter == timedelta(0):
        return
    if not (isinstance(jitter, timedelta) and timedelta(0) <= jitter <= rule.spacing and not jitter % SECOND):
        most = f"{shown(rule.spacing)}, the shortest time between two runs"
        raise InvalidSchedule(f"jitter is {shown(jitter)}: it must be whole seconds, from 0 s to {most}")


def check_fires(rule: Rule, *, after: datetime | None = None) -> None:
    """Raise InvalidSchedule when a rule names no instant, or none after `after`."""
    if next(rule.after(FIRST - MOMENT if after is None else after), None) is not None:
        return
    bounds = {name: getattr(rule, name) for name in ("start", "end", "count")}
    shown_bounds = ", ".join(f"{name} is {_plain(value)}" for name, value in bounds.items() if value is not None)
    run = "a run" if after is None else f"a run after {instant.text(after)}"
    raise InvalidSchedule(f"{shown_bounds}: the rule must have {run}, up to the year {LAST.year - 1}")
