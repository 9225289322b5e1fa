"""What the page asks for, checked: a wrong field is named, with its value and what is allowed."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from dueline.errors import InvalidJob
from dueline.model.text import shown

_MOST_HOURS = 24


def hours(query: Mapping[str, str]) -> timedelta:
    """Return the field `hours` of a query string."""
    text = query.get("hours", "")
    if text not in map(str, range(1, _MOST_HOURS + 1)):
        raise InvalidJob(f"hours is {shown(text)}: it must be a whole number from 1 to {_MOST_HOURS}")
    return timedelta(hours=int(text))


def limit(body: Mapping[str, Any]) -> int | None:
    """Return the field `limit` of a body; None is no limit."""
    value = body.get("limit")
    if value is not None and (type(value) is not int or value < 1):
        raise InvalidJob(f"limit is {shown(value)}: it must be a whole number from 1, or null")
    return value


def errors(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the field `errors` of a body; none are all."""
    value = body.get("errors", [])
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise InvalidJob(f"errors is {shown(value)}: it must be a list of names of errors, empty for all")
    return frozenset(value)


def is_to_apply(body: Mapping[str, Any]) -> bool:
    """Return the field `apply` of a body."""
    value = body.get("apply", False)
    if not isinstance(value, bool):
        raise InvalidJob(f"apply is {shown(value)}: it must be true or false")
    return value


def check_confirmed(body: Mapping[str, Any], queue: str) -> None:
    """Raise InvalidJob unless the field `confirm` of a body is the queue's name."""
    if body.get("confirm") != queue:
        raise InvalidJob(f"confirm is {shown(body.get('confirm'))}: it must be the queue's name, {queue!r}")


def check_fields(body: Mapping[str, Any], *allowed: str) -> None:
    """Raise InvalidJob where a body has other fields: a misspelt filter would select all."""
    unknown = [name for name in body if name not in allowed]
    if unknown:
        raise InvalidJob(f"{shown(unknown[0])} is no field: there is {', '.join(allowed) or 'none'}")
