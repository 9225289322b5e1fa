"""A rule against a brute-force search of each minute: around changes of the clock, and anywhere."""

import calendar
import re
from collections import namedtuple
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dueline.schedules.rule import Rule, zone_of

MINUTE, HOUR, DAY, MOMENT = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)
# A year with changes of its clock. Samoa left out a day in 2011, Kwajalein in 1993, and Kathmandu a quarter of an hour.
ZONES = {
    "Africa/Casablanca": 2024,
    "America/Caracas": 2016,
    "America/New_York": 2027,
    "America/Santiago": 2027,
    "America/St_Johns": 2010,
    "Antarctica/Troll": 2027,
    "Asia/Kathmandu": 1985,
    "Australia/Lord_Howe": 2027,
    "Europe/Berlin": 2027,
    "Europe/Dublin": 2027,
    "Pacific/Apia": 2011,
    "Pacific/Kwajalein": 1993,
}
CRONS = [
    "*/7 * * * *",
    "30 * * * *",
    "15,45 */2 * * *",
    "59 */23 * * *",
    "*/20 */3 * * 0",
    "* 2 * * *",
    "0 0 * * *",
    "30 1 * * *",
    "30 2 * * *",
    "10,20,50 1,2,3 * * *",
    "0 3 * * *",
    "0 9 * * 1-5",
    "30 2 */2 * 0",
    "45 2 L * 7",
    "15 1 * 3,10,11 0#1",
    "5 0-23/2 28-31 * 6L",
]
# Of each kind one: the clock goes back in spring, by half an hour, by an hour, and over a day. `make soak` takes all.
OF_EACH_KIND = ("Africa/Casablanca", "Australia/Lord_Howe", "Europe/Berlin", "Pacific/Apia")
Fields = namedtuple("Fields", "minutes hours days months weekdays")


def numbers(field, low, high):
    """Return the values of a field, but for those that depend on the month."""
    runs = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        runs.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return runs


@cache
def fields(cron):
    minute, hour, day, month, weekday = cron.split()
    days = {"L"} if day == "L" else numbers(day, 1, 31)
    weekdays = {weekday} if re.search("[#L]", weekday) else {each % 7 for each in numbers(weekday, 0, 7)}
    return Fields(numbers(minute, 0, 59), numbers(hour, 0, 23), days, numbers(month, 1, 12), weekdays)


@cache
def is_day(cron, day):
    of = fields(cron)
    last = calendar.monthrange(day.year, day.month)[1]
    weekday = day.isoweekday() % 7
    nth = {f"{weekday}#{(day.day + 6) // 7}"} | ({f"{weekday}L"} if day.day > last - 7 else set())
    by_day = day.day in of.days or ("L" in of.days and day.day == last)
    by_weekday = weekday in of.weekdays or bool(nth & of.weekdays)
    starred = any(cron.split()[n].startswith("*") for n in (2, 4))
    return day.month in of.months and ((by_day and by_weekday) if starred else (by_day or by_weekday))


def shows_a_run(cron, of, clock):
    return clock.minute in of.minutes and clock.hour in of.hours and is_day(cron, clock.date())


@cache
def clocks(zone, start, end):
    """Return each minute: its instant, what the clock shows, and by how much the clock changed then."""
    minutes, before = [], (start - MINUTE).astimezone(zone_of(zone)).utcoffset()
    for n in range((end - start) // MINUTE):
        local = (start + n * MINUTE).astimezone(zone_of(zone))
        minutes.append((start + n * MINUTE, local.replace(tzinfo=None), local.utcoffset() - before))
        before = local.utcoffset()
    return minutes


def brute_force(cron, zone, start, end):
    """Return all runs from start to end. Start must not lie within three hours after a change."""
    of, is_interval = fields(cron), cron.split()[1].startswith("*")
    second_pass_ends, runs = start, []
    for instant, clock, change in clocks(zone, start, end):
        shown = [clock]
        if change and not is_interval and abs(change) <= 3 * HOUR:
            second_pass_ends = instant - change
            shown += [clock - n * MINUTE for n in range(1, change // MINUTE + 1)]
        if instant >= second_pass_ends and any(shows_a_run(cron, of, each) for each in shown):
            runs.append(instant)
    return runs


@cache
def changes(zone):
    """Return the days of a zone's year at whose end the clock is another than at their beginning."""
    days = [datetime(ZONES[zone], 1, 1, tzinfo=UTC) + n * DAY for n in range(367)]
    offsets = [day.astimezone(zone_of(zone)).utcoffset() for day in days]
    return [day for day, before, after in zip(days, offsets, offsets[1:], strict=False) if before != after]


def both_ways(rule, start, end):
    forwards = list(takewhile(lambda run: run < end, rule.after(start - MOMENT)))
    backwards = list(takewhile(lambda run: run >= start, rule.before(end - MOMENT)))
    return forwards, backwards[::-1]


@pytest.mark.parametrize(
    "zone", [zone if zone in OF_EACH_KIND else pytest.param(zone, marks=pytest.mark.thorough) for zone in ZONES]
)
def test_clock_changes_match_brute_force(zone):
    assert changes(zone)
    for day in changes(zone):
        start, end = day - 6 * HOUR, day + 30 * HOUR
        for cron in CRONS:
            rule, runs = Rule(cron=cron, zone=zone), brute_force(cron, zone, start, end)
            assert both_ways(rule, start, end) == (runs, runs), (cron, day)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    zone=st.sampled_from(sorted(ZONES)),
    cron=st.sampled_from(CRONS),
    hours=st.integers(0, 47 * 365 * 24),
    before=st.timedeltas(timedelta(0), 6 * HOUR),
)
def test_runs_anywhere_match_brute_force(zone, cron, hours, before):
    end = datetime(1990, 1, 1, tzinfo=UTC) + hours * HOUR
    start = end - before
    runs = [run for run in brute_force(cron, zone, end - 12 * HOUR, end) if run >= start]
    assert both_ways(Rule(cron=cron, zone=zone), start, end) == (runs, runs)
