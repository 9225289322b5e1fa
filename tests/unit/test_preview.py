"""`dueline schedules preview`: when a rule runs, without any deployment."""

import json

import pytest
from typer.testing import CliRunner

from dueline.cli.app import app
from dueline.cli.schedule_commands import COMMANDS


def typed(*args):
    return CliRunner().invoke(app, ["schedules", *args])


def preview(*args):
    return typed("preview", *args, "--zone", "Europe/Berlin")


def cells(result):
    """Return the cells of the table, without its head and what is above."""
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.rstrip().splitlines()[2:]
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_an_example(name):
    assert f"For example: dueline schedules {name}" in typed(name, "--help").stdout


def test_help_is_the_default():
    explicit, default = typed("--help"), typed()
    assert explicit.stdout.split() == default.stdout.split()
    assert explicit.exit_code == default.exit_code == 0


def test_preview_marks_the_clock_put_forward():
    result = preview("30 2 * * *", "--from", "2027-03-27T00:00:00+01:00", "--count", "3")
    assert result.stdout.startswith("At 02:30 every day, Europe/Berlin\n")
    assert cells(result) == [
        ["Sat 2027-03-27 02:30:00 CET", "2027-03-27 01:30:00"],
        ["Sun 2027-03-28 03:00:00 CEST", "2027-03-28 01:00:00", "put forward by 1:00:00 since the run before"],
        ["Mon 2027-03-29 02:30:00 CEST", "2027-03-29 00:30:00"],
    ]


def test_preview_marks_both_passes_of_an_hour():
    (first, second, after) = cells(preview("30 * * * *", "--from", "2027-10-31T00:00:00Z", "--count", "3"))
    assert first[-1] == "shows this twice: the first time"
    assert second[-1] == "put back by 1:00:00 since the run before; shows this twice: the second time"
    assert after[-1] == "2027-10-31 02:30:00"


def test_preview_as_json_lines():
    result = preview("--every", "90m", "--from", "2027-03-28T00:00:00Z", "--count", "2", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {
            "scheduled_for": "2027-03-28T01:30:00.000Z",
            "local": "2027-03-28T03:30:00+02:00",
            "clock": "put forward by 1:00:00 since the run before",
        },
        {"scheduled_for": "2027-03-28T03:00:00.000Z", "local": "2027-03-28T05:00:00+02:00"},
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["0 25 * * *"], "its hour has '25' at character 3: a value must be from 0 to 23"),
        ([], "neither cron nor every is given"),
        (["@daily", "--every", "2h"], "must be one of them"),
        (["--every", "30"], "every is 30 s: it must be from 60 s"),
        (["@daily", "--count", "0"], "--count"),
        (["@daily", "--from", "2027-01-01"], "has no time zone"),
    ],
)
def test_bad_rule_is_one_line_and_exit_code_2(args, message):
    result = preview(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
