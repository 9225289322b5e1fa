"""Ending: refuse a rule of which no run is to come, and say what to change."""

from dataclasses import replace
from datetime import datetime, timedelta

from dueline.errors import InvalidSchedule
from dueline.model import instant
from dueline.schedules.rule import FIRST, LAST, MOST_RUNS, Rule

_MOMENT = timedelta(microseconds=1)


def check_fires(rule: Rule) -> None:
    """Raise InvalidSchedule when a rule names no instant at all."""
    if rule.never_fires:
        _refuse(rule, FIRST - _MOMENT, which="first")


def check_fires_after(now: datetime, rule: Rule) -> None:
    """Raise InvalidSchedule when no run of a rule is to come: its `end` has passed, or all of its `count`."""
    if next(rule.after(now), None) is None:
        _refuse(rule, now, which="next")


def _refuse(rule: Rule, after: datetime, *, which: str) -> None:
    following = next(replace(rule, end=None).after(after), None)
    if rule.end and following:
        must = f"it must be after {instant.text(following)}, the {which} instant that the rule names"
        raise InvalidSchedule(f"end is {instant.text(rule.end)}: {must}")
    last = next(rule.before(after), None)
    if rule.count and last:
        must = f"it must name one that is to come, at most {MOST_RUNS}: the last of them was {instant.text(last)}"
        raise InvalidSchedule(f"count is {rule.count}: {must}")
    start = instant.text(rule.start or FIRST)
    up_to = f"up to the year {LAST.year - 1}"
    raise InvalidSchedule(f"start is {start}: it must have an instant of the rule after it, {up_to}")
