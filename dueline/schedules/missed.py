"""Missed: which runs get a job although their time has passed, because no planner came or ticks stood still."""

from datetime import datetime, timedelta
from itertools import islice

from dueline.schedules.definition import CatchUp
from dueline.schedules.head import Head
from dueline.schedules.occurrence import between, jitter

# Of a run that is later than this, `catch_up` decides.
ON_TIME = timedelta(seconds=60)
CAUGHT_UP = 100
CAUGHT_UP_WITHIN = timedelta(days=1)
_INSTANT = timedelta(milliseconds=1)


def to_submit(head: Head, after: datetime, until: datetime, *, now: datetime) -> list[datetime]:
    """Return which nominals after `after`, up to `until`, get a job, in order.

    They are those up to 60 s late or to come, and of others those that are caught up. It takes as long for a year as
    for a day.
    """
    rule = head.definition.rule
    present = now - jitter(head.queue, head.name, head.definition)
    in_time = present - ON_TIME - _INSTANT
    caught_up = [nominal for nominal in _caught_up(head, present, in_time) if after < nominal <= until]
    return caught_up[::-1] + list(between(rule, max(after, in_time), until))


def _caught_up(head: Head, present: datetime, in_time: datetime) -> list[datetime]:
    """Return the nominals up to `in_time` that are caught up, the latest first."""
    rule = head.definition.rule
    match head.definition.catch_up:
        case CatchUp.NONE:
            return []
        case CatchUp.LATEST:
            # Only if the one after it is still to come.
            return [nominal for nominal in islice(rule.before(present), 1) if nominal <= in_time]
        case CatchUp.ALL:
            earliest = present - CAUGHT_UP_WITHIN
            return [nominal for nominal in islice(rule.before(in_time), CAUGHT_UP) if nominal >= earliest]
