"""What is asked of a schedule, as JSON. What a rule may be, the API says, so that a client need not compute it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dueline.errors import InvalidJob, InvalidSchedule
from dueline.model.request import json_text
from dueline.model.text import shown

_SPANS = ("every", "jitter")
_INSTANTS = ("start", "end", "from", "to")


def body_of(given: Mapping[str, Any], **payload: object) -> str:
    """Return the JSON text of what is given, None left out, with the payload, if any. Raises InvalidSchedule."""
    fields = {name: _plain(name, value) for name, value in given.items() if value is not None}
    try:
        return json_text(fields | payload)
    except InvalidJob as error:
        raise InvalidSchedule(str(error)) from None


def aware(name: str, value: object) -> datetime:
    """Return an instant. Raises InvalidSchedule unless it is a datetime with a time zone."""
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return value
    raise InvalidSchedule(f"{name} is {shown(value)}: it must be a datetime with a time zone")


def _plain(name: str, value: Any) -> Any:
    if name in _SPANS:
        return _seconds(name, value)
    return aware(name, value).isoformat() if name in _INSTANTS else value


def _seconds(name: str, value: object) -> int:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, bool) and isinstance(seconds, int | float) and float(seconds).is_integer():
        return int(seconds)
    raise InvalidSchedule(f"{name} is {shown(value)}: it must be a timedelta, or a number, of whole seconds")
