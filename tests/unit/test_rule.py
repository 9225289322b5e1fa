"""When a schedule runs: at times of the day or in intervals, across changes of the clock, and what is refused."""

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from dueline.errors import InvalidSchedule
from dueline.schedules import rule
from dueline.schedules.rule import Rule

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2027, 1, 4, 9, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def next_runs(rule, since, count):
    return list(islice(rule.after(since), count))


def last_runs(rule, until, count):
    return list(islice(rule.before(until), count))


# In intervals of physical time


def test_every_counts_from_its_start():
    rule = Rule(every=timedelta(hours=5), start=datetime(2027, 3, 28, 1, tzinfo=BERLIN))
    assert next_runs(rule, at("2000-01-01"), 3) == [at(f"2027-03-28T{hour:02}:00") for hour in (0, 5, 10)]
    assert last_runs(rule, at("2027-03-28T05:00"), 9) == [at("2027-03-28T05:00"), at("2027-03-28T00:00")]


def test_every_counts_from_1970_without_start():
    rule = Rule(every=timedelta(seconds=90))
    assert next_runs(rule, at("1970-01-01"), 2) == [at("1970-01-01T00:01:30"), at("1970-01-01T00:03:00")]
    assert last_runs(rule, at("1970-01-01T00:01:31"), 9) == [at("1970-01-01T00:01:30"), at("1970-01-01")]
    assert next_runs(rule, at("9987-12-31T23:57:59"), 9) == [at("9987-12-31T23:58:30")]


# Start, end, count


@pytest.mark.parametrize("rule", [{"cron": "0 * * * *"}, {"every": timedelta(hours=1)}])
def test_rule_runs_from_start_to_before_end(rule):
    within = Rule(**rule, start=START, end=START + timedelta(hours=3))
    runs = [START + timedelta(hours=n) for n in range(3)]
    assert list(within.after(at("1990-01-01"))) == runs
    assert list(within.after(START)) == runs[1:]
    assert list(within.before(at("2090-01-01"))) == runs[::-1]
    assert list(within.before(runs[1] - MOMENT)) == runs[:1]
    assert list(within.before(START - MOMENT)) == list(within.after(runs[2])) == []


@pytest.mark.parametrize("rule", [{"cron": "0 0 * * *"}, {"every": timedelta(days=1)}])
def test_count_counts_from_start(rule):
    counted = Rule(**rule, start=at("2027-01-01"), count=3)
    runs = [at("2027-01-01"), at("2027-01-02"), at("2027-01-03")]
    assert list(counted.after(at("2000-01-01"))) == runs
    assert list(counted.after(runs[1])) == runs[2:]
    assert list(counted.before(at("2090-01-01"))) == runs[::-1]
    assert list(Rule(**rule, start=at("2027-01-01"), count=3, end=runs[2]).after(at("2000-01-01"))) == runs[:2]


def test_rule_has_runs_from_1970_to_9987():
    rule = Rule(cron="0 0 1 1 *", zone="Pacific/Kiritimati")
    assert next_runs(rule, datetime.max.replace(tzinfo=UTC), 9) == []
    assert next_runs(rule, at("9986-06-01"), 9) == [at("9986-12-31T10:00"), at("9987-12-31T10:00")]
    assert last_runs(rule, at("1972-06-01"), 9)[-1] > at("1970-01-01")
    assert last_runs(rule, datetime.min.replace(tzinfo=UTC), 9) == []


@pytest.mark.parametrize(
    ("rule", "spacing"),
    [
        ({"cron": "0 9 * * MON"}, timedelta(days=1)),
        ({"cron": "0,20 * * * *"}, timedelta(minutes=20)),
        ({"cron": "0 1,22 * * *"}, timedelta(hours=3)),
        ({"cron": "*/7 * * * *"}, timedelta(minutes=4)),
        ({"every": timedelta(seconds=61)}, timedelta(seconds=61)),
    ],
)
def test_spacing_is_the_shortest_by_the_clock(rule, spacing):
    assert Rule(**rule).spacing == spacing


@pytest.mark.parametrize(
    ("alias", "cron"), [("@hourly", "0 * * * *"), (" @Weekly ", "0 0 * * 0"), ("@yearly", "0 0 1 1 *")]
)
def test_alias_equals_its_expression(alias, cron):
    assert next_runs(Rule(cron=alias), START, 5) == next_runs(Rule(cron=cron), START, 5)


def test_zones_come_from_tzdata_not_the_machine(request, tmp_path):
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes((files("tzdata") / "zoneinfo" / "Asia" / "Tokyo").read_bytes())
    request.addfinalizer(zoneinfo.reset_tzpath)
    zoneinfo.reset_tzpath([tmp_path])
    assert ZoneInfo.no_cache("Europe/Berlin").utcoffset(datetime(2027, 1, 1)) == timedelta(hours=9)  # noqa: DTZ001
    rule.zone_of.cache_clear()
    assert next(Rule(cron="0 9 * * *", zone="Europe/Berlin").after(START)) == at("2027-01-05T08:00")


# What is refused


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        ("0 9 * * * *", "it has 6 fields and must have 5: minute, hour, day of month, month, day of week"),
        ("60 9 * * *", "its minute has '60': it must be 0 to 59, *, a range such as 1-5"),
        ("0 9,24 * * *", "its hour has '24': it must be 0 to 23"),
        ("0 9 0 * *", "its day of month has '0': it must be 1 to 31, L (the last day)"),
        ("0 9 * Foo *", "its month has 'FOO': it must be 1 to 12, JAN to DEC"),
        ("0 9 * * 8", "its day of week has '8': it must be 0 to 7, SUN to SAT"),
        ("*/90 * * * *", "its minute has '*/90': it must be 0 to 59"),
        ("0 9 * * FRI-MON", "its day of week has 'FRI-MON'"),
        ("0,,5 9 * * *", "its minute has ''"),
        ("0 9 \u0661 * *", "its day of month has '\u0661'"),
        ("0 0 30 2 *", "the days that it names never come"),
        ("@reboot", "it must have five fields, or be one of @hourly, @daily"),
        ("0 9 * * *" + " " * 300, "cron has 309 characters: at most 256 are allowed"),
    ],
)
def test_bad_cron_names_field_and_allowed(cron, reason):
    with pytest.raises(InvalidSchedule) as refused:
        Rule(cron=cron)
    assert str(refused.value).startswith("cron ")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({}, "neither cron nor every is given: it must be one of them"),
        ({"cron": "@daily", "every": timedelta(days=1)}, "cron is '@daily' and every is .*: it must be one of them"),
        ({"cron": []}, r"cron is \[\]: it must be a text"),
        ({"cron": "@daily", "zone": None}, "zone is None: it must be a text"),
        (
            {"cron": "@daily", "zone": "../../passwd"},
            "zone is '../../passwd': it must be the name of an IANA time zone",
        ),
        ({"every": timedelta(seconds=59)}, "every is 59 s: it must be from 60 s to 3653 days, in whole seconds"),
        ({"every": timedelta(seconds=90.5)}, "every is 90.5 s: .* in whole seconds"),
        ({"every": timedelta(days=3654)}, "every is .* to 3653 days"),
        ({"every": 90}, "every is 90: it must be"),
        ({"cron": "@daily", "start": datetime(2027, 1, 1)}, "start is .*00:00: it .* with a zone"),  # noqa: DTZ001
        ({"cron": "@daily", "end": "2027-01-01"}, "end is '2027-01-01': it must be a date and a time with a zone"),
        ({"cron": "@daily", "start": START + MOMENT}, "start is .*: it must be in whole seconds"),
        ({"cron": "@daily", "end": at("1969-12-31")}, "end is .*: .* in the years 1970 to 9998"),
        ({"cron": "@daily", "start": START, "end": START}, "end is .*: it must be after start, which is 2027-01-04T09"),
        ({"cron": "@daily", "count": 3}, "count is 3: it must come with start"),
        ({"cron": "@daily", "start": START, "count": 1001}, "count is 1001: it must be from 1 to 1000"),
        ({"cron": "@daily", "start": START, "count": True}, "count is True: it must be from 1 to 1000"),
    ],
)
def test_bad_rule_names_field_value_and_allowed(rule, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        Rule(**rule)


# The documentation


def _examples():
    page = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text()
    return re.findall(r"^\| `([^`]+)` \| (\S+) \| ([-\d:, ]+) \|", page, re.MULTILINE)


def test_examples_of_the_documentation():
    assert len(_examples()) == 5
    for cron, since, runs in _examples():
        expected = [at(run) for run in runs.split(", ")]
        assert next_runs(Rule(cron=cron, zone="Europe/Berlin"), at(since), len(expected)) == expected, (cron, since)
