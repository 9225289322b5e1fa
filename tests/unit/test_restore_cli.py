"""What `dueline restore` says, asks and refuses, over a backup in memory."""

import json

import pytest
from typer.testing import CliRunner

from dueline.cli import connect, restore
from dueline.cli.app import app
from dueline.memory import MemoryBackup
from tests.builders import EMAILS
from tests.system import System
from tests.unit.test_restore import a_restore, lose

TABLES = ("--jobs", "jobs-restored", "--state", "state-restored")


@pytest.fixture
def asked(monkeypatch):
    """What was asked of a deployment that lost a job; it is restored from memory."""
    system, asked = System(), []
    system.tick(EMAILS)
    system.schedule(3600)
    backup = MemoryBackup(system.stores.table)
    lose(system)

    def connected(target, *, on_progress, **given):
        asked.append(given)
        return a_restore(system, backup)

    monkeypatch.setattr(connect, "restore", connected)
    return asked


def typed(*args, stdin=None):
    return CliRunner().invoke(app, ["restore", *args], input=stdin)


def test_without_apply_it_tells_what_would_be_done_and_what_no_backup_knows(asked):
    for _ in range(2):
        told = typed(*TABLES)
        assert told.exit_code == 0
        assert "emails" in told.stdout
        assert "rows: 2; --apply takes them over" in told.stdout
        assert all(line in told.stdout for line in restore.UNKNOWN)
    assert asked[0] == {"jobs": "jobs-restored", "state": "state-restored", "hand_over_from": None}


def test_with_apply_it_restores_once(asked):
    counts = {"handed_over": 0, "settled": 0, "there": 0, "now": 0, "later": 1, "unreadable": 0}
    told = json.loads(typed(*TABLES, "--apply", "--yes", "--json").stdout)
    assert told == {"applied": True, "rows": 2, "queues": {"emails": counts}, "left": True}
    assert json.loads(typed(*TABLES, "--apply", "--yes", "--json").stdout)["left"] is False
    assert "nothing is left" in typed(*TABLES, "--apply", "--yes").stdout


@pytest.mark.parametrize(
    ("answer", "line"), [("n\n", "rows: 2; --apply takes them over"), ("y\n", "rows: 2; taken over")]
)
def test_who_is_there_is_asked_after_a_look(asked, monkeypatch, answer, line):
    monkeypatch.setattr(restore, "can_ask", lambda: True)
    told = typed(*TABLES, "--apply", stdin=answer)
    assert [each for each in told.stdout.splitlines() if "rows: " in each][-1] == line


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--jobs", "dueline-jobs", "--state", "x"], "--jobs is 'dueline-jobs', which the deployment has"),
        (["--jobs", "x", "--state", "dueline-state"], "--state is 'dueline-state', which the deployment has"),
        (["--jobs", "x", "--state", "x"], "they are two tables"),
        ([*TABLES, "--hand-over-from", "2999-01-01T00:00:00Z"], "--hand-over-from is in the future"),
        ([*TABLES, "--apply"], "add --yes"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(asked, args, complaint):
    told = typed(*args)
    assert (told.exit_code, asked) == (2, [])
    assert complaint in told.stderr
