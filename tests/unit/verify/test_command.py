"""`dueline verify`: asks, refuses what others use, tidies up whatever happens, and tells by its exit code."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from dueline.cli import connect
from dueline.cli.app import app
from dueline.verify.checks import CHECKS
from dueline.verify.sandbox import PLAIN
from tests.builders import NOW
from tests.unit.verify.sandbox import FakeSandbox


@pytest.fixture
def sandbox(monkeypatch, tmp_path):
    made = FakeSandbox()

    def reached(_target, *, name, deploy):
        made.name, made.command = name, deploy
        return made

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUELINE_NAME", raising=False)
    monkeypatch.setattr(connect, "sandbox", reached)
    return made


def typed(*args, before=()):
    return CliRunner().invoke(app, [*before, "verify", *args])


def test_what_passes_ends_with_0_and_a_report_of_both_forms(sandbox, tmp_path):
    done = typed("--only", "keys", "--yes", "--report", "out")
    assert done.exit_code == 0, done.output
    assert "keys: passed" in done.stdout
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".md", ".json"}
    assert sandbox.tidied == 1


def test_what_fails_ends_with_6(sandbox):
    sandbox.broken.forgets_keys = True
    done = typed("--only", "keys", "--yes")
    assert done.exit_code == 6
    assert "keys: failed: keys with several jobs" in done.stdout


def test_what_is_not_as_it_must_be_is_named(sandbox):
    sandbox.broken.set_otherwise = {"schedules": {"plain.0": False}}
    done = typed("--only", "settings", "--yes")
    assert done.exit_code == 6
    assert "must be 0; schedules that do not fire: plain.0 (" in done.stdout


def test_for_machines_each_result_is_a_line_of_json(sandbox):
    done = typed("--only", "keys", "--only", "chain", "--yes", "--json")
    *checks, last = map(json.loads, done.stdout.splitlines())
    assert {check["check"]: check["verdict"] for check in checks} == {"keys": "passed", "chain": "passed"}
    assert last["good"] is True


def test_nothing_is_begun_where_nobody_can_be_asked(sandbox):
    done = typed("--only", "keys")
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert sandbox.accepted == 0


def test_who_is_asked_is_told_the_price_and_may_say_no(sandbox, monkeypatch):
    monkeypatch.setattr("dueline.cli.verify.can_ask", lambda: True)
    done = CliRunner().invoke(app, ["verify", "--only", "keys"], input="n\n")
    assert done.exit_code == 0
    assert "$0." in done.stdout
    assert sandbox.accepted == 0


def test_a_deployment_with_other_queues_is_refused(sandbox):
    sandbox.strange = ("invoices",)
    done = typed("--yes", before=("--name", "production"))
    assert done.exit_code == 2
    assert "'production' cannot be broken" in done.stderr
    assert "other queues: invoices" in done.stderr
    assert (sandbox.accepted, sandbox.tidied) == (0, 0)


def test_a_deployment_with_jobs_in_its_queues_is_refused(sandbox):
    sandbox.add(PLAIN, {}, NOW)
    done = typed("--yes")
    assert done.exit_code == 2
    assert "queue plain has 1 jobs scheduled" in done.stderr


def test_its_deployment_is_the_sandbox_unless_another_is_named(sandbox):
    typed("--only", "keys", "--yes")
    assert sandbox.name == "dueline-verify"
    typed("--only", "keys", "--yes", before=("--name", "dueline"))
    assert sandbox.name == "dueline"


def test_ctrl_c_tidies_up_and_reports_what_had_ended(sandbox, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sandbox, "ringing", interrupt)
    done = typed("--only", "rights", "--only", "alarms", "--yes", "--report", "out")
    assert done.exit_code == 130
    assert sandbox.tidied == 1
    (markdown,) = (tmp_path / "out").glob("*.md")
    assert "interrupted" in markdown.read_text()
    assert "| rights | passed |" in markdown.read_text()


def test_what_cannot_be_removed_is_told_and_is_no_success(sandbox):
    sandbox.untidied = ["roles of policies are left: AccessDenied"]
    done = typed("--only", "keys", "--yes")
    assert done.exit_code == 6
    assert "roles of policies are left" in done.stderr


def test_clean_only_mends_and_removes(sandbox):
    done = typed("--clean")
    assert (done.exit_code, sandbox.tidied, sandbox.accepted) == (0, 1, 0)


def test_the_checks_are_listed_with_their_prices_without_a_deployment(sandbox, monkeypatch):
    monkeypatch.setattr(connect, "sandbox", lambda *_, **__: pytest.fail("nothing is to be asked"))
    lines = typed("--list", "--scale", "full").stdout
    assert all(check.name in lines for check in CHECKS)
    documents = [json.loads(line) for line in typed("--list", "--json").stdout.splitlines()]
    assert [each["check"] for each in documents] == [check.name for check in CHECKS]


def test_a_check_that_there_is_none_of_is_named_with_those_that_there_are(sandbox):
    done = typed("--only", "weather", "--yes")
    assert done.exit_code == 2
    assert "weather" in done.stderr
    assert "timers" in done.stderr


def test_what_deploys_the_sandbox_is_handed_on(sandbox):
    typed("--only", "keys", "--yes", "--deploy", "cdk deploy --context queues={queues}")
    assert sandbox.command == "cdk deploy --context queues={queues}"


def test_what_deploys_something_else_is_refused(sandbox):
    done = typed("--only", "partitions", "--yes", "--deploy", "cdk deploy")
    assert (done.exit_code, sandbox.accepted) == (2, 0)
    assert "{queues} must be in it" in done.stderr


def test_no_deployment_is_removed_that_is_not_named_as_a_sandbox(monkeypatch):
    monkeypatch.setattr(connect, "removal", lambda *_, **__: pytest.fail("nothing is to be removed"))
    done = typed("--remove", "--yes", before=("--name", "dueline"))
    assert done.exit_code == 2
    assert "begin with dueline-verify" in done.stderr


@pytest.mark.parametrize(("left", "code"), [([], 0), (["dueline-verify-jobs"], 1)])
def test_what_a_removal_leaves_is_told(monkeypatch, left, code):
    monkeypatch.setattr(connect, "removal", lambda *_, **__: lambda: left)
    done = typed("--remove", "--yes")
    assert done.exit_code == code
    assert all(name in done.stderr for name in left)


def test_what_takes_days_is_begun_when_it_is_named_and_looked_at_later(sandbox):
    assert "ttl" not in typed("--only", "keys", "--yes").stdout
    assert "ttl: started" in typed("--only", "ttl", "--yes").stdout
    assert "still there after 30.0 hours" in later(sandbox, hours=30).stdout
    sandbox.rows = [replace(row, is_there=False) for row in sandbox.rows]
    gone = later(sandbox, hours=1)
    assert (gone.exit_code, "ttl: passed" in gone.stdout) == (0, True)
    assert "cannot be judged here: no row was left" in later(sandbox, hours=1).stdout


def test_a_row_that_is_there_after_two_days_is_a_failure(sandbox):
    typed("--only", "ttl", "--yes")
    assert later(sandbox, hours=49).exit_code == 6


def later(sandbox, *, hours):
    sandbox.clock._elapsed += hours * 3600
    return typed("--later", "--yes")
