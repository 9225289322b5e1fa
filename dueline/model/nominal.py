"""Nominal: the instant that a schedule's rule names, and how a job says that it is made for one.

It is one text, in the job's row as in its message: `{schedule}@{nominal}`, and `!skip` behind it where the job is
skipped while another job of its schedule runs. A worker knows it from there, and reads no schedule.
"""

import re
from datetime import datetime
from typing import Any

from dueline.errors import InvalidJob, InvalidSchedule
from dueline.model import instant
from dueline.model.text import shown

# No dot comes first: clients shorten a path with `.` or `..` in it.
SCHEDULE_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_CHARACTERS = "a name has 1 to 64 of a-z, A-Z, 0-9, -, _ and ., which may not come first"
_SKIP = "!skip"
_FORM = re.compile(rf"({SCHEDULE_NAME})@([^!]+)({_SKIP})?")


def text(schedule: str, nominal: datetime, *, exclusive: bool) -> str:
    """Return what a row and a message say of a job that a schedule made.

    >>> from datetime import UTC
    >>> text("digest", datetime(2026, 11, 23, 8, tzinfo=UTC), exclusive=True)
    'digest@2026-11-23T08:00:00.000Z!skip'
    """
    return f"{schedule}@{instant.text(nominal)}{_SKIP if exclusive else ''}"


def fields(told: object) -> dict[str, Any]:
    """Return the fields of a Job that `text` told; none of nothing told. Raises InvalidJob.

    >>> fields("digest@2026-11-23T08:00:00.000Z")["schedule"]
    'digest'
    """
    if told is None:
        return {}
    match = _FORM.fullmatch(told) if isinstance(told, str) else None
    try:
        if match is None:
            raise ValueError("it must be {schedule}@{nominal}, and !skip behind it or nothing")
        return {"schedule": match[1], "nominal": instant.parse(match[2]), "exclusive": match[3] is not None}
    except ValueError as error:
        raise InvalidJob(f"its schedule is {shown(told, most=200)}: {error}") from None


def checked_name(name: object) -> str:
    """Return a schedule's name: 1 to 64 of a-z, A-Z, 0-9, -, _ and ., which may not come first.

    Raises InvalidSchedule for any other.
    """
    if isinstance(name, str) and re.fullmatch(SCHEDULE_NAME, name):
        return name
    raise InvalidSchedule(f"name is {shown(name)}: {_CHARACTERS}")


def check(schedule: object, nominal: object, *, exclusive: bool) -> None:
    """Raise InvalidJob unless a job is of no schedule, or of one and for an instant."""
    if schedule is None and nominal is None and not exclusive:
        return
    if not (isinstance(schedule, str) and re.fullmatch(SCHEDULE_NAME, schedule)):
        raise InvalidJob(f"schedule is {shown(schedule)}: {_CHARACTERS}")
    if not (isinstance(nominal, datetime) and nominal.tzinfo is not None):
        raise InvalidJob(f"nominal is {shown(nominal)}: it must be an instant with a time zone")
