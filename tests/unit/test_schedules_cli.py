"""`dueline schedules ...`, over real sockets to the API's own function."""

import json
from dataclasses import replace
from functools import partial

import pytest
from typer.testing import CliRunner

from dueline.cli.app import app
from dueline.model import instant, rows
from tests.builders import a_job, a_queue
from tests.called import imported, over
from tests.gate import open_gate, refused

BERLIN = ["0 9 * * MON-FRI", "--zone", "Europe/Berlin"]
SECRET = "the-secret-of-a-payload"  # noqa: S105
FILE = """
name: shop
queues:
  emails:
    partitions: 4
    schedules:
      digest: {cron: 0 9 * * MON-FRI, zone: Europe/Berlin, payload: {to: the-secret-of-a-payload}}
      beat:
        every: 600
        start: 2027-01-04T00:00:00Z
  invoices:
"""


@pytest.fixture
def gate(monkeypatch):
    with open_gate() as gate, imported(monkeypatch, a_queue(), a_queue(name="invoices")) as api:
        gate.api = partial(over, api)
        # The function runs in this process: its metrics are no output of the command.
        monkeypatch.setattr("functions.metrics._print", lambda line: None)
        yield gate


@pytest.fixture
def run(gate):
    return lambda *args: CliRunner().invoke(app, ["--url", gate.url, "schedules", *args])


@pytest.fixture
def apply(run, tmp_path):
    def apply(text, *args):
        file = tmp_path / "schedules.yaml"
        file.write_text(text)
        return run("apply", str(file), *args)

    return apply


def a_job_of_a_run():
    due = instant.parse("2035-01-01T09:00:00Z")
    return a_job(due=due, schedule="digest", nominal=due)


def documents(result):
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def actions(result):
    return {f"{each['queue']}/{each['schedule']}": each["action"] for each in documents(result)}


def writes(gate):
    return [asked for asked in gate.asked if asked.method != "GET"]


def test_a_schedule_is_put_and_shown_with_its_next_runs_to_people_and_as_the_api_has_it_to_machines(run, gate):
    shown = run("put", "emails", "digest", *BERLIN, "--payload", '{"to": "ann"}', "--owner", "me")
    assert shown.exit_code == 0, shown.stderr
    assert "schedule        emails/digest\n" in shown.stdout
    assert "runs            0 9 * * MON-FRI Europe/Berlin\n" in shown.stdout
    assert shown.stdout.count(" 09:00:00 +0") == 5
    [told] = documents(run("get", "emails", "digest", "--json"))
    assert told == json.loads(gate.api(gate.asked[-1]).body)
    [listed] = documents(run("list", "emails", "--json"))
    assert listed == told


def test_schedules_are_listed_a_line_each(run):
    run("put", "emails", "beat", "--every", "10m")
    run("put", "emails", "digest", *BERLIN, "--owner", "me")
    run("pause", "emails", "digest")
    head, beat, digest = run("list", "emails").stdout.splitlines()
    assert head.split() == ["schedule", "runs", "state", "next", "owner"]
    assert beat.split()[:4] == ["beat", "every", "10m", "live"]
    assert [digest.split()[0], *digest.split()[-2:]] == ["digest", "paused", "me"]
    assert documents(run("resume", "emails", "digest", "--json"))[0]["paused"] is False
    assert "state           deleted" in run("delete", "emails", "digest").stdout


def test_it_runs_on_demand_and_for_what_has_passed_and_tells_its_history(run, gate):
    run("put", "emails", "daily", "--every", "1d")
    [once] = documents(run("run", "emails", "daily", "--payload", "5", "--key", "k", "--json"))
    assert documents(run("run", "emails", "daily", "--payload", "5", "--key", "k", "--json")) == [once]
    span = ["--from", "2026-11-02T00:00:00Z", "--to", "2026-11-04T00:00:00Z"]
    filled = documents(run("backfill", "emails", "daily", *span, "--json"))
    assert [each["nominal"][:10] for each in filled] == ["2026-11-02", "2026-11-03"]
    table = run("backfill", "emails", "daily", *span).stdout.splitlines()
    assert (table[0].split(), len(table)) == (["for", "id"], 3)
    assert run("history", "emails", "daily", "--most", "3").stdout.split()[0] == "for"
    assert gate.asked[-1].path.endswith("?limit=3")


def test_jobs_that_a_schedule_planned_are_shown_with_it_and_with_their_time(gate):
    def typed(*args):
        return CliRunner().invoke(app, ["--url", gate.url, *args])

    job = a_job_of_a_run()
    gate.api.args[0].RESOURCES.table.write([rows.job_row(job)])
    of_run = {"schedule": "digest", "nominal": instant.text(job.nominal)}
    [got], [listed] = (documents(typed(*ask, "--json")) for ask in (["get", str(job.id)], ["jobs", "emails"]))
    assert (got.items() >= of_run.items(), listed.items() >= of_run.items()) == (True, True)
    assert "schedule  digest\n" in typed("get", str(job.id)).stdout
    assert typed("jobs", "emails").stdout.split()[:5] == ["id", "due", "schedule", "for", "payload"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["put", "emails", "a", "61 * * * *"], 2, "minute"),
        (["put", "emails", "a"], 2, "cron"),
        (["put", "emails", "a#b", "* * * * *"], 2, "name"),
        (["get", "emails", "no-such"], 3, "no-such"),
        (["pause", "emails", "a", "--if-match", '"9-9"'], 3, "a"),
    ],
)
def test_what_is_refused_is_one_line_and_an_exit_code(run, args, code, said):
    result = run(*args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_is_compared_then_applied_and_applied_again_changes_nothing(apply, gate):
    dry = apply(FILE, "--dry-run", "--json")
    assert actions(dry) == {"emails/digest": "create", "emails/beat": "create"}
    assert not writes(gate)
    assert "2 to create" in apply(FILE).stdout
    puts = len(writes(gate))
    assert actions(apply(FILE, "--json")) == {"emails/digest": "same", "emails/beat": "same"}
    assert len(writes(gate)) == puts == 2


def test_a_dry_run_tells_what_the_real_one_would_refuse_and_exits_as_that(apply, gate):
    gate.of_ids = None
    text = "schedules: {over: {every: 60, end: '2020-01-01T00:00:00Z'}, low: {every: 60, priority: 2}, ok: {every: 60}}"
    dry = apply(text, "--queue", "emails", "--dry-run")
    assert dry.exit_code == 2
    assert "3 to create" in dry.stdout
    over, low = dry.stderr.splitlines()
    assert "emails/over would be refused: end is 2020-01-01T00:00:00.000Z" in over
    assert "emails/low would be refused: priority is 2" in low
    assert not writes(gate)
    real = apply(text, "--queue", "emails")
    assert (real.exit_code, len(real.stderr.splitlines())) == (2, 2)
    assert "1 of 3 done" in real.stdout


def test_what_differs_is_told_by_the_field_and_of_the_payload_nothing_else(apply, gate):
    apply(FILE)
    changed = FILE.replace("Europe/Berlin", "UTC").replace(SECRET, "bob")
    shown = apply(changed, "--dry-run").stdout
    assert "zone: Europe/Berlin → default, payload" in shown
    [told] = [each for each in documents(apply(changed, "--json")) if each["action"] == "change"]
    assert told["changes"] == {"zone": {"from": "Europe/Berlin", "to": None}, "payload": {}}
    assert SECRET not in shown
    assert "bob" not in shown
    assert set(actions(apply(changed, "--json")).values()) == {"same"}


def test_what_somebody_makes_or_changes_after_the_look_is_left_alone(apply, run, gate):
    ask = gate.api

    def meddle(asked):
        if asked.method == "PUT":
            gate.api = ask
            theirs = {name: value for name, value in asked.headers.items() if not name.lower().startswith("if-")}
            ask(replace(asked, body=b'{"every": 3600, "owner": "they"}', headers=theirs))
        return ask(asked)

    for every in (900, 1800):
        gate.api = meddle
        result = apply(f"schedules: {{raced: {{every: {every}}}}}", "--queue", "emails")
        assert result.exit_code == 4
        assert "0 of 1 done" in result.stdout
        assert documents(run("get", "emails", "raced", "--json"))[0]["owner"] == "they"
        run("put", "emails", "raced", "--every", "2h")


def test_prune_deletes_what_its_owner_has_and_the_file_names_no_more_and_nothing_else(apply, run):
    run("put", "emails", "by-hand", "--every", "1d")
    run("put", "emails", "of-another", "--every", "1d", "--owner", "svc")
    apply(FILE)
    beat_alone = "schedules: {beat: {every: 600, start: '2027-01-04T00:00:00Z'}}"
    kept = apply(beat_alone, "--queue", "emails")
    assert "leave   emails/digest  is not in the file" in kept.stdout
    assert "--prune deletes them" in kept.stdout
    pruned = apply(beat_alone, "--queue", "emails", "--prune", "--json")
    assert actions(pruned) == {"emails/beat": "same", "emails/digest": "delete"}
    names = [each["schedule"] for each in documents(run("list", "emails", "--json"))]
    assert names == ["beat", "by-hand", "of-another"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queues: {emails: {schedules: {a: {cron: 61 * * * *}}}}", "emails.schedules.a.cron is"),
        ("queues: {emails: {schedules: {a: {}}}}", "emails.schedules.a: neither cron nor every"),
        ("queues: {emails: {schedules: {a: {evry: 60}}}}", "there are cron, every"),
        ("queues: {emails: {schedules: {a: {every: 60, start: 2027-01-04}}}}", "start"),
        ("queues: {emails: {schedules: {a: {every: 60, payload: 2027-01-04}}}}", "payload"),
        ("queues: {emails: {schedules: {'a#b': {every: 60}}}}", "a#b"),
        ("queues: {emails: {schedules: {a: {every: 60, owner: me}}}}", "owner"),
        ("schedules: {a: {every: 60}}", "--queue"),
        ("a: 1", "queues"),
        ("- 1", "queues"),
        ("{", "not YAML: "),
        ("queues: {emails: {schedules: {a: {cron: */5 * * * *}}}}", "not YAML, put the cron expression in quotes"),
        ("queues:\n  emails:\n    schedules:\n      a:\n        cron: @daily", "put the cron expression in quotes"),
        ("queues: {emails: {schedules: {a: {every: 15m}}}}", "must be in seconds"),
        ("queues: {emails: {schedules: {a: {every: 60, jitter: 1m}}}}", "must be in seconds"),
    ],
)
def test_a_file_that_is_wrong_anywhere_changes_nothing(apply, gate, text, said):
    result = apply(text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert gate.asked == []


def test_of_several_changes_one_that_fails_does_not_keep_the_others(apply, gate):
    ask = gate.api
    gate.api = lambda asked: (
        refused(403, "forbidden") if asked.method == "PUT" and asked.path.endswith("digest") else ask(asked)
    )
    result = apply(FILE)
    assert result.exit_code == 5
    assert "1 of 2 done" in result.stdout
