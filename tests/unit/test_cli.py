"""The command line, over real sockets to an API that answers as it is told to."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from dueline import Client, Patience, errors
from dueline.cli import connect, importing, lines, main, options, redrive
from dueline.cli.app import COMMANDS, app
from dueline.cli.connect import Target
from dueline.cli.faults import EXIT_CODES, exit_code_of
from dueline.cli.import_ids import ImportIds
from dueline.cli.screen import Screen
from dueline.memory import MemoryQueue, VirtualClock
from dueline.model.job import JobId, Route
from dueline.model.message import ERROR, ID, REASON, Message
from dueline.operate.redrive import Ends
from tests.builders import a_job, an_id
from tests.gate import a_job_told, an_api, open_gate, problem, refused, told
from tests.wire import Wire, failing, on, refusing, straight

ROOT = Path(__file__).parents[2]
SECRET = "the-secret-of-a-payload"  # noqa: S105
SOON = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3, minutes=5)


@pytest.fixture
def gate():
    with open_gate() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _settings(monkeypatch, tmp_path):
    """The zone, the environment and the directory that the tests speak of."""
    monkeypatch.chdir(tmp_path)
    for name in ("DUELINE_NAME", "DUELINE_URL", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def impatient(monkeypatch):
    """Let clients try once."""
    connected = connect.client

    def once(target, *, patience=None):
        client = connected(target, patience=patience)
        return Client(client._api, patience=Patience(attempts=1))

    monkeypatch.setattr(connect, "client", once)


def typed(*args, stdin=None):
    return CliRunner().invoke(app, list(args), input=stdin)


@pytest.fixture
def run(gate):
    return lambda *args, stdin=None: typed("--url", gate.url, *args, stdin=stdin)


def documents(text):
    return [json.loads(line) for line in text.splitlines()]


def of_stderr(result):
    (document,) = documents(result.stderr)
    return document["error"]


# All commands


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_it_does_with_an_example(name):
    result = typed(name, "--help")
    assert result.exit_code == 0
    assert f"For example: dueline {name}" in result.stdout


def test_help_tells_the_exit_codes_and_is_shown_when_nothing_is_asked():
    asked, unasked = typed("--help"), typed()
    assert asked.stdout == unasked.stdout
    assert asked.exit_code == unasked.exit_code == 0
    assert " ".join(EXIT_CODES.split()) in " ".join(asked.stdout.split())


def test_the_version_is_told():
    assert typed("--version").stdout == "dueline 0.1.0\n"


@pytest.mark.parametrize("where", [("--json", "get"), ("get", "--json")])
def test_json_may_stand_before_and_after_the_command(run, where):
    id = str(an_id())
    assert documents(run(*where, id).stdout)[0]["id"] == id


def test_json_may_stand_at_the_end(run):
    id = str(an_id())
    assert documents(run("get", id, "--json").stdout)[0]["id"] == id


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["schedule", "emails"], "Missing argument 'PAYLOAD'"),
        (["nothing"], "No such command 'nothing'"),
        (["get", "x", "--nope"], "--nope"),
        (["schedule", "emails", "1", "--delay", "3x"], "'3x' is no span of time: it must be seconds, or such as 15m"),
        (["schedule", "emails", "1", "--at", "soon"], "Invalid isoformat string: 'soon'"),
        (["schedule", "emails", "1", "--at", "2027-01-01T00:00:00"], "has no time zone"),
        (["jobs", "emails", "--from", "soon"], "'soon'"),
        (["jobs", "emails", "--limit", "0"], "--limit"),
        (["jobs", "emails", "--limit", "9" * 20], "--limit"),
        (["schedule", "emails", '"\udcff"'], "the payload is no text in UTF-8"),
        (["redrive", "emails", "--older-than", "900000d"], "--older-than"),
        (["redrive", "emails", "--younger-than", "900000d"], "--younger-than"),
        (["--url", "http://[::1", "queues"], "'http://[::1' is no URL: it must be such as http://127.0.0.1:8000"),
        (["--url", "nonsense", "queues"], "'nonsense' is no URL"),
        (["--url", "http://127.0.0.1:x", "queues"], "'http://127.0.0.1:x' is no URL"),
        (["redrive"], "give a QUEUE or --parked"),
        (["redrive", "emails", "--parked"], "give a QUEUE or --parked"),
        (["redrive", "emails", "--past-retention"], "go with --parked"),
        (["redrive", "emails", "--apply"], "add --yes"),
    ],
)
def test_what_is_typed_wrong_is_one_line_and_exits_2(run, gate, args, said):
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("dueline: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    machine = of_stderr(run(*args, "--json"))
    assert machine["code"] == "usage"
    assert said in machine["message"]
    assert gate.asked == []


def test_a_time_beyond_those_that_can_be_listed_is_told_its_bounds_and_exits_2(run):
    result = run("jobs", "emails", "--to", "9999-12-31T23:59:59.9999Z")
    assert result.exit_code == 2
    assert "to 9999-01-01T00:00:00.000Z" in result.stderr


ANSWERS = {
    (429, "throttled"): 1,
    (503, "unavailable"): 1,
    (400, "invalid_job"): 2,
    (400, "invalid_schedule"): 2,
    (413, "payload_too_large"): 2,
    (409, "id_reused"): 2,
    (422, "key_reused"): 2,
    (404, "job_not_found"): 3,
    (404, "schedule_not_found"): 3,
    (404, "queue_not_found"): 3,
    (404, "route_not_found"): 3,
    (409, "too_many_schedules"): 2,
    (409, "too_many_changes"): 2,
    (409, "run_of_schedule"): 2,
    (409, "already_finished"): 4,
    (412, "schedule_changed"): 4,
    (403, None): 5,
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("answer", "code"), ANSWERS.items())
def test_each_error_has_its_exit_code_and_is_one_line(run, gate, answer, code):
    status, name = answer
    gate.script = [refused(status, name, "a detail\nof two lines")] * 2
    result = run("reschedule", str(an_id()), "--delay", "3d")
    assert (result.exit_code, result.stdout) == (code, "")
    assert "a detail of two lines" in result.stderr
    assert result.stderr.count("\n") == 1
    machine = run("reschedule", str(an_id()), "--delay", "3d", "--json")
    assert machine.exit_code == code
    assert of_stderr(machine)["message"].startswith("a detail of two lines")
    assert name in (None, "route_not_found", of_stderr(machine)["code"])


def test_every_error_has_an_exit_code_that_is_told():
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.DuelineError)]
    assert {exit_code_of(kind("no")) for kind in kinds} == {1, 2, 3, 4, 5}


def test_an_error_that_nobody_meant_is_a_line_without_a_traceback(run, monkeypatch):
    def broken(_target):
        raise RuntimeError("of nobody's making")

    monkeypatch.setattr(connect, "client", broken)
    result = run("get", str(an_id()))
    assert (result.exit_code, result.stderr) == (1, "dueline: RuntimeError: of nobody's making\n")


def test_ctrl_c_is_a_line_and_exits_130(run, monkeypatch):
    def interrupted(_target):
        raise KeyboardInterrupt

    monkeypatch.setattr(connect, "client", interrupted)
    result = run("get", str(an_id()))
    assert (result.exit_code, result.stderr) == (130, "dueline: interrupted\n")


def test_the_deployment_and_credentials_are_passed_on(monkeypatch):
    targets = []
    monkeypatch.setattr(connect, "client", lambda target: targets.append(target) or SimpleNamespace(queues=list))
    typed("--name", "sandbox", "--profile", "ops", "--region", "eu-west-1", "queues")
    typed("queues")
    monkeypatch.setenv("DUELINE_NAME", "e2e")
    monkeypatch.setenv("DUELINE_URL", "http://127.0.0.1:1")
    typed("queues")
    assert targets == [
        Target(name="sandbox", profile="ops", region="eu-west-1"),
        Target(),
        Target(name="e2e", url="http://127.0.0.1:1"),
    ]


def test_a_profile_that_is_not_there_exits_5():
    result = typed("--profile", "nobodys", "queues")
    assert result.exit_code == 5
    assert "nobodys" in result.stderr
    assert typed("--profile", "nobodys", "redrive", "emails").exit_code == 5


# Schedule


def test_a_job_is_scheduled_and_shown_in_local_time_with_how_far_it_is(run, gate):
    due = SOON
    gate.api = lambda _: told(a_job_told(an_id(due=due)), 201)
    result = run("schedule", "emails", '{"to": "ann"}', "--delay", "3h")
    assert result.exit_code == 0
    assert f"due    {due:%Y-%m-%d %H:%M:%S} UTC (in 3 h)\nstate  accepted\n" in result.stdout
    (asked,) = gate.asked
    assert asked.path == "/queues/emails/jobs"
    assert asked.json == {"payload": {"to": "ann"}, "delay": 10_800.0, "key": asked.json["key"]}


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["--delay", "90"], {"delay": 90.0}),
        (["--delay", "15m"], {"delay": 900.0}),
        (["--delay", "1.5d"], {"delay": 129_600.0}),
        (["--at", SOON.isoformat()], {"at": SOON.isoformat(timespec="milliseconds").replace("+00:00", "Z")}),
        (["--key", "7"], {"key": "7"}),
        (["--tenant", "acme", "--priority", "2"], {"tenant": "acme", "priority": 2}),
    ],
)
def test_options_are_passed_on(run, gate, options, asked):
    assert run("schedule", "emails", "1", *options).exit_code == 0
    assert asked.items() <= gate.asked[0].json.items()


def test_a_payload_is_read_from_stdin_or_a_file(run, gate, tmp_path):
    (tmp_path / "job.json").write_text('["é"]')
    assert run("schedule", "emails", "-", stdin='{"n": 1}\n').exit_code == 0
    assert run("schedule", "emails", f"@{tmp_path}/job.json").exit_code == 0
    assert [asked.json["payload"] for asked in gate.asked] == [{"n": 1}, ["é"]]


@pytest.mark.parametrize("payload", [SECRET, f'{{"a": "{SECRET}"', "@/nowhere/job.json"])
def test_a_payload_that_is_no_good_exits_2_and_is_not_quoted(run, gate, payload):
    result = run("schedule", "emails", payload)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert SECRET not in result.stderr
    assert gate.asked == []


def test_a_scheduled_job_as_json(run):
    (job,) = documents(run("schedule", "emails", "1", "--key", "7", "--json").stdout)
    assert set(job) == {"id", "queue", "due", "route", "state"}
    assert (job["queue"], job["route"], job["state"]) == ("emails", "table", "accepted")
    assert job["due"].endswith(".000Z")


@pytest.mark.usefixtures("impatient")
def test_a_job_that_may_be_scheduled_is_asked_for_again_under_the_id_that_is_told(run, gate):
    queue = {"queue": "emails", "taking": 1, "direct_horizon": 890}
    gate.of_ids = told({"queues": [queue]})
    gate.script = [refused(503, "unavailable", "lost")]
    result = run("schedule", "emails", "1", "--delay", "2h")
    id = gate.asked[0].json["id"]
    again = f"asked again with --id {id}, and no time, it is there once"
    assert result.stderr == f"dueline: lost; job {id} may be scheduled all the same; {again}\n"
    gate.script = [told(a_job_told(JobId.parse(id)), 201)]
    assert id in run("schedule", "emails", "1", "--id", id).stdout
    assert gate.asked[1].json == {"payload": 1, "id": id}
    assert run("schedule", "emails", "-", "--lines", "--id", id, stdin="1").exit_code == 2


OF_IDS = told({"queues": [{"queue": "emails", "taking": 4, "direct_horizon": 890}]})
RUN = "5f0f3f5e-0000-4000-8000-000000000000.4.t.4102444800000"


def test_lines_are_scheduled_each_for_itself(run, gate):
    gate.of_ids = OF_IDS
    lines = '{"n": 1}\n\n{"n": 2}\n3\n'
    result = run("schedule", "emails", "-", "--lines", "--key", "batch", "--delay", "60", stdin=lines)
    assert (result.exit_code, result.stdout) == (0, "scheduled 3 of 3\n")
    (asked,) = gate.asked
    assert [job["payload"] for job in asked.json["jobs"]] == [{"n": 1}, {"n": 2}, 3]
    assert [job["key"] for job in asked.json["jobs"]] == ["batch-1", "batch-3", "batch-4"]
    assert {job["delay"] for job in asked.json["jobs"]} == {60.0}


REFUSED = {"error": problem(422, "key_reused")}, {"error": problem(403, "x", "never")}


def test_each_line_that_failed_is_told_to_machines_and_the_highest_code_is_the_exit_code(run, gate):
    gate.api = lambda _: told({"jobs": [a_job_told(an_id()), *REFUSED]})
    result = run("schedule", "emails", "-", "--lines", "--json", "--key", "k", stdin="1\n2\n3\n")
    assert result.exit_code == 5
    assert [each["line"] for each in documents(result.stdout)] == [1]
    *failed, left = documents(result.stderr)
    assert [(each["error"]["line"], each["error"]["code"], each["error"]["key"]) for each in failed] == [
        (2, "key_reused", "k-2"),
        (3, "forbidden", "k-3"),
    ]
    (file,) = Path().glob("dueline-left-*.jsonl")
    assert left == {"left": {"lines": 2, "file": str(file), "key": "k"}}


def an_api_that_refuses(failed, status, code, *, also=None):
    """Answer as the API does, but refuse these keys; what it refuses may be scheduled all the same."""
    refusals = dict.fromkeys(failed, (status, code)) | (also or {})

    def answer(asked):
        jobs = json.loads(an_api(asked).body)["jobs"]
        for n, job in enumerate(asked.json["jobs"]):
            if job["key"] in refusals:
                jobs[n] = {"error": problem(*refusals[job["key"]], f"no to {job['key']}")}
        return told({"jobs": jobs})

    return answer


@pytest.mark.usefixtures("impatient")
def test_errors_of_lines_are_told_by_kind_with_a_count_and_a_few_examples(run, gate):
    gate.api = an_api_that_refuses(
        {f"k-{n}" for n in range(6, 51)}, 503, "unavailable", also={"k-51": (400, "invalid_job")}
    )
    lines = "".join(f'{{"n": {n}}}\n' for n in range(1, 52))
    result = run("schedule", "emails", "-", "--lines", "--key", "k", "--delay", "2h", stdin=lines)
    assert (result.exit_code, result.stdout) == (2, "scheduled 5 of 51\n")
    (file,) = Path().glob("dueline-left-*.jsonl")
    assert result.stderr.splitlines() == [
        "dueline: 45 lines failed: unavailable, such as",
        "dueline:   line 6: no to k-6",
        "dueline:   line 7: no to k-7",
        "dueline:   line 8: no to k-8",
        "dueline: 1 line failed: invalid_job, such as",
        "dueline:   line 51: no to k-51",
        f"dueline: 46 lines left, in {file}, each under its old number",
        f"dueline: to go on, with none scheduled twice: dueline --url {gate.url} schedule emails @{file}"
        " --lines --key k --delay 7200",
    ]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("of_ids", "name"), [(told({"queues": []}), "key"), (OF_IDS, "id")])
def test_what_is_left_can_be_given_back_as_it_says_and_is_the_same_jobs(run, gate, of_ids, name):
    lines = '{"n": 1}\n\n{"n": "é"}\r\n{"n": 4}'
    gate.of_ids, gate.script = of_ids, [refused(503, "unavailable")]
    result = run("schedule", "emails", "-", "--lines", "--priority", "2", "--at", SOON.isoformat(), stdin=lines)
    (file,) = Path().glob("dueline-left-*.jsonl")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ('{"n": 1}\n\n{"n": "é"}\n{"n": 4}\n', 0o600)
    said, _, command = result.stderr.splitlines()[-1].partition(": dueline ")
    assert "none scheduled twice" in said
    again = run(*shlex.split(command))
    assert (again.exit_code, again.stdout, again.stderr) == (0, "scheduled 3 of 3\n", "")
    first, second = (asked.json["jobs"] for asked in gate.asked)
    assert first == second
    assert len({job[name] for job in first}) == 3
    assert list(Path().iterdir()) == [file]


def test_without_a_key_a_line_goes_under_an_id_that_its_run_and_its_number_make(run, gate):
    gate.of_ids = OF_IDS
    result = run("schedule", "emails", "-", "--lines", "--at", SOON.isoformat(), "--tenant", "t", stdin="1\n\n3\n")
    assert (result.exit_code, result.stdout) == (0, "scheduled 2 of 2\n")
    one, three = ((job.pop("id"), job) for asked in gate.asked for job in asked.json["jobs"])
    assert [one[1], three[1]] == [{"payload": 1, "tenant": "t"}, {"payload": 3, "tenant": "t"}]
    first, second = JobId.parse(one[0]), JobId.parse(three[0])
    assert (first.due, first.route, first.partition) == (second.due, second.route, second.partition)
    assert (first.due, first.route) == (SOON, Route.TABLE)
    assert first.uid != second.uid


def test_a_run_makes_the_same_ids_again_whatever_the_deployment_tells_by_then(run, gate):
    assert run("schedule", "emails", "-", "--lines", "--run", RUN, stdin="1\n2\n").exit_code == 0
    gate.of_ids = OF_IDS
    assert run("schedule", "emails", "-", "--lines", "--run", RUN, stdin="\n2\n").exit_code == 0
    (one, two), again = gate.asked[0].json["jobs"], gate.asked[1].json
    assert again == two
    assert two["id"] == str(ImportIds.parse(RUN).id("emails", 2)) != one["id"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("delay", "said"),
    [("1h", "with none scheduled twice until some minutes before 20"), ("60", "scheduled all the same comes twice")],
)
def test_what_a_later_try_may_do_is_told(run, gate, delay, said):
    gate.of_ids, gate.api = OF_IDS, lambda _: refused(503, "unavailable")
    result = run("schedule", "emails", "-", "--lines", "--left", "left", "--delay", delay, stdin="1\n")
    assert said in result.stderr.splitlines()[-1]
    (*_, left) = documents(run("schedule", "emails", "@left", "--lines", "--json", "--run", RUN).stderr)
    assert left["left"].keys() == {"lines", "file", "run"}
    assert left["left"]["run"] == RUN


@pytest.mark.usefixtures("impatient")
def test_lines_are_kept_when_nothing_tells_what_ids_need_and_nothing_is_asked_for_none(run, gate):
    gate.of_ids = refused(503, "unavailable", "lost")
    result = run("schedule", "emails", "-", "--lines", "--left", "left", "--delay", "1h", stdin="1\n\n3\n")
    assert (result.exit_code, gate.asked, Path("left").read_text()) == (1, [], "1\n\n3\n")
    assert re.search(r"twice: dueline .* @left --lines --key \S+ --delay 3600\n", result.stderr)
    assert run("schedule", "emails", "-", "--lines", stdin="\n").exit_code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--run", RUN, "--at", SOON.isoformat()], "--run and --at are both given"),
        (["--run", RUN, "--delay", "0"], "--run and --delay are both given"),
        (["--run", RUN, "--key", "k"], "--run and --key are both given"),
        (["--run", RUN.replace(".t.", ".x.")], "is no run: it must be of the form {UUID}.{partitions}.{d or t}.{due"),
        (["--run", RUN.replace(".4.", ".0.")], "is no run"),
        (["--run", RUN.upper()], "is no run"),
    ],
)
def test_a_run_that_is_none_or_says_two_things_exits_2_before_anything_is_sent(run, gate, options, said):
    result = run("schedule", "emails", "-", "--lines", *options, stdin="1\n")
    assert (result.exit_code, gate.asked) == (2, [])
    assert said in result.stderr
    assert "--run goes with --lines" in run("schedule", "emails", "1", "--run", RUN).stderr


@pytest.mark.usefixtures("impatient")
def test_lines_that_are_left_keep_their_numbers_and_a_second_run_only_has_those(run, gate):
    gate.api = an_api_that_refuses({"k-2", "k-5"}, 503, "unavailable")
    run("schedule", "emails", "-", "--lines", "--key", "k", "--left", "left", stdin="1\n2\n3\n4\n5\n6\n")
    assert Path("left").read_text() == "\n2\n\n\n5\n"
    gate.asked.clear()
    result = run("schedule", "emails", "@left", "--lines", "--key", "k", "--left", "left2")
    assert result.stdout == "scheduled 0 of 2\n"
    assert [(job["key"], job["payload"]) for job in gate.asked[0].json["jobs"]] == [("k-2", 2), ("k-5", 5)]
    assert Path("left2").read_text() == Path("left").read_text()


@pytest.mark.usefixtures("impatient")
def test_where_no_file_can_be_written_the_same_lines_can_be_given_again(run, gate):
    gate.api = lambda _: refused(503, "unavailable")
    result = run("schedule", "emails", "-", "--lines", "--key", "k", "--left", "no/dir", stdin="1\n2\n")
    assert result.exit_code == 1
    *_, left, again = result.stderr.splitlines()
    assert left == "dueline: 2 lines left, which no/dir could not take: No such file or directory"
    assert again.endswith(f": dueline --url {gate.url} schedule emails - --lines --key k")


def test_a_file_that_is_there_is_not_written_over(run, gate):
    Path("left").write_text("mine")
    result = run("schedule", "emails", "-", "--lines", "--left", "left", stdin="1\n")
    assert (result.exit_code, Path("left").read_text(), gate.asked) == (2, "mine", [])
    assert "--left is 'left', which is there already" in result.stderr
    assert run("schedule", "emails", "1", "--left", "else").exit_code == 2


@pytest.fixture
def _sigint():
    """SIGINT as it is in a foreground: a shell's background job ignores it, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_sigint")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_keeps_the_lines_of_which_it_knows_nothing(run, monkeypatch, ending):
    noted = importing.Import._note

    def interrupted(self, result, number, *more):
        if number == 3:
            signal.raise_signal(ending)
        noted(self, result, number, *more)

    monkeypatch.setattr(importing.Import, "_note", interrupted)
    result = run("schedule", "emails", "-", "--lines", "--key", "k", "--left", "left", stdin="1\n2\n3\n4\n")
    assert (result.exit_code, result.stdout) == (130, "scheduled 2 of 4\n")
    assert Path("left").read_text() == "\n\n3\n4\n"
    assert result.stderr.splitlines()[-1] == "dueline: interrupted"


@pytest.mark.usefixtures("_sigint", "impatient")
@pytest.mark.parametrize("what", [KeyboardInterrupt, BrokenPipeError])
def test_lines_keep_their_numbers_when_stderr_fails_while_one_is_told(run, gate, monkeypatch, what):
    gate.api = an_api_that_refuses({"k-2"}, 503, "unavailable")

    def failing(*_, **__):
        raise what

    monkeypatch.setattr(Screen, "fault", failing)
    run("schedule", "emails", "-", "--lines", "--json", "--key", "k", "--left", "left", stdin="1\n2\n3\n4\n")
    assert Path("left").read_text() == "\n2\n3\n4\n"


@pytest.mark.usefixtures("_sigint", "impatient")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_what_is_left_is_written_cuts_nothing_off(run, gate, monkeypatch, ending):
    gate.api = lambda _: refused(503, "unavailable")
    write = lines._write

    def disturbed(path, left):
        def signalled():
            for number, line in left:
                signal.raise_signal(ending)
                assert not Path("left").exists()
                yield number, line

        write(path, signalled())

    # What a signal does that nobody heeds: it would end the tests.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    monkeypatch.setattr(lines, "_write", disturbed)
    try:
        result = run("schedule", "emails", "-", "--lines", "--key", "k", "--left", "left", stdin="1\n2\n3\n")
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (result.exit_code, result.stdout) == (1, "scheduled 0 of 3\n")
    assert Path("left").read_text() == "1\n2\n3\n"
    assert [str(each) for each in Path().iterdir()] == ["left"]


def test_the_command_to_go_on_names_the_deployment_and_the_credentials(run, gate, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("DUELINE_NAME", "sandbox")
    gate.api = an_api_that_refuses({"k-1"}, 400, "invalid_job", also={"k-2": (400, "invalid_job")})
    typing = ["schedule", "emails", "-", "--lines", "--key", "k", "--left", "left"]
    result = run("--region", "eu-west-1", *typing, stdin="1\n2\n")
    assert result.stderr.splitlines()[-1].endswith(
        f"twice: dueline --name sandbox --url {gate.url} --region eu-west-1 schedule emails @left --lines --key k"
    )


def test_the_deployment_is_found_before_lines_are_read_from_stdin(monkeypatch):
    reading = []
    monkeypatch.setattr(options, "source", lambda text: reading.append(text))
    assert typed("--profile", "nobodys", "schedule", "emails", "-", "--lines", stdin="1\n").exit_code == 5
    assert typed("--url", "http://127.0.0.1:9", "schedule", "EMAILS", "-", "--lines", stdin="1\n").exit_code == 3
    assert reading == []


def test_more_lines_than_are_held_in_memory_all_go_through(run, gate, monkeypatch):
    monkeypatch.setattr(lines, "_HELD_BYTES", 100)
    result = run("schedule", "emails", "-", "--lines", stdin="".join(f'{{"n": {n}}}\n' for n in range(2000)))
    assert (result.exit_code, result.stdout) == (0, "scheduled 2000 of 2000\n")
    sent = [job["payload"]["n"] for asked in gate.asked for job in asked.json["jobs"]]
    assert sorted(sent) == list(range(2000))


@pytest.mark.parametrize(
    ("asked", "said"),
    [(("--key", ""), "key is ''"), (("--tenant", "a b"), "tenant is 'a b'"), (("--priority", "0"), "priority is 0")],
)
def test_what_no_line_can_be_asked_with_is_told_before_any_is_sent(run, gate, asked, said):
    result = run("schedule", "emails", "-", "--lines", *asked, stdin="1\n")
    assert result.exit_code == 2
    assert said in result.stderr
    assert gate.asked == list(Path().iterdir()) == []


def test_a_key_that_gets_too_long_for_a_later_line_is_told_before_any_is_sent(run, gate):
    result = run("schedule", "emails", "-", "--lines", "--key", "k" * 253, stdin="\n".join("1" * 10))
    assert result.exit_code == 2
    assert "key is 'kkk" in result.stderr
    assert "1 to 255 printable" in result.stderr
    assert gate.asked == list(Path().iterdir()) == []


@pytest.mark.parametrize("asked", [[], ["--lines"]])
def test_a_payload_from_a_stdin_that_is_closed_or_a_file_that_breaks_off_is_wrong_usage(run, gate, monkeypatch, asked):
    # Of the memory of a process there is nothing at 0.
    broken = run("schedule", "emails", "@/proc/self/mem", *asked)
    assert (broken.exit_code, broken.stderr) == (
        2,
        "dueline: Invalid value: '/proc/self/mem' cannot be read: Input/output error\n",
    )
    monkeypatch.setattr("dueline.cli.options.sys", SimpleNamespace(stdin=None))
    closed = run("schedule", "emails", "-", *asked)
    assert closed.exit_code == 2
    assert "which is stdin, and that is closed" in closed.stderr
    assert gate.asked == []


def test_ctrl_c_while_commands_are_imported_is_one_line(monkeypatch, capsys):
    class Interrupted:
        @property
        def run(self):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "dueline.cli.app", Interrupted())
    assert main() == 130
    assert capsys.readouterr().err == "dueline: interrupted\n"


@pytest.mark.parametrize("source", ["1", "@/nowhere/jobs"])
def test_lines_of_nowhere_are_refused(run, gate, source):
    result = run("schedule", "emails", source, "--lines")
    assert (result.exit_code, gate.asked) == (2, [])


def test_a_line_that_is_no_text_is_named(run, gate):
    Path("jobs").write_bytes(b'1\n"\xff"\n')
    result = run("schedule", "emails", "@jobs", "--lines")
    assert (result.exit_code, gate.asked) == (2, [])
    assert "line 2 is no text in UTF-8" in result.stderr


UNSENDABLE = {
    "a no-break space": b'\xc2\xa0{"a": 1}',
    "a form feed": b"3\x0c",
    "no number": b"[NaN]",
    "infinity": b"-Infinity",
    "too large for a float": b"1e999",
    "too many digits": b"9" * 5000,
}


@pytest.mark.parametrize("line", UNSENDABLE.values(), ids=UNSENDABLE)
def test_what_cannot_be_sent_is_refused_with_its_line_before_anything_is_sent(run, gate, line):
    Path("jobs").write_bytes(b"1\n" + line + b"\n3\n")
    result = run("schedule", "emails", "@jobs", "--lines")
    assert (result.exit_code, result.stdout, gate.asked) == (2, "", [])
    assert "line 2 is no JSON" in result.stderr
    assert [str(each) for each in Path().iterdir()] == ["jobs"]


def test_blank_lines_are_those_of_what_json_takes_for_space(run, gate):
    Path("jobs").write_bytes(b" \t\r\n\t1 \r\n\n2")
    assert run("schedule", "emails", "@jobs", "--lines", "--key", "k").stdout == "scheduled 2 of 2\n"
    assert [(job["key"], job["payload"]) for job in gate.asked[0].json["jobs"]] == [("k-2", 1), ("k-4", 2)]


def test_a_number_that_cannot_be_sent_is_refused_in_a_single_payload_too(run, gate):
    for payload in ("NaN", "1e999", "9" * 5000):
        result = run("schedule", "emails", payload)
        assert (result.exit_code, gate.asked) == (2, [])
        assert "the payload is no JSON" in result.stderr


def test_a_line_that_is_read_when_checked_and_not_when_sent_fails_for_itself(run, gate, monkeypatch):
    # What nests just so deep as the stack allows may be such a line.
    read, read_before = options.line, set()

    def once(content, number):
        if number == 2 and number in read_before:
            raise typer.BadParameter("line 2 is no JSON that can be read: it nests too deep")
        read_before.add(number)
        return read(content, number)

    monkeypatch.setattr(options, "line", once)
    result = run("schedule", "emails", "-", "--lines", "--key", "k", "--left", "left", stdin="1\n2\n3\n")
    assert (result.exit_code, result.stdout) == (2, "scheduled 2 of 3\n")
    assert Path("left").read_text() == "\n2\n"
    assert [job["key"] for job in gate.asked[0].json["jobs"]] == ["k-1", "k-3"]


def test_nothing_is_scheduled_when_one_line_is_no_json(run, gate):
    result = run("schedule", "emails", "-", "--lines", stdin=f"1\n{SECRET}\n")
    assert result.exit_code == 2
    assert "line 2 is no JSON" in result.stderr
    assert SECRET not in result.stderr
    assert gate.asked == []


@pytest.mark.usefixtures("impatient")
def test_a_job_that_may_be_scheduled_all_the_same_is_named(run, gate):
    gate.script = [told(problem(503, "unavailable", "lost", id="the-id"), 503)] * 2
    line = run("schedule", "emails", "1", "--key", "7").stderr
    assert line == (
        "dueline: lost; job the-id may be scheduled all the same; asked again with --key 7 it is there once\n"
    )
    machine = of_stderr(run("schedule", "emails", "1", "--key", "7", "--json"))
    assert (machine["id"], machine["key"]) == ("the-id", "7")


# Get, cancel, reschedule


def test_a_job_is_looked_up(run):
    id = str(an_id())
    result = run("get", id)
    assert result.stdout.startswith(f"id     {id}\nqueue  emails\n")
    assert "state  scheduled" in result.stdout


def test_several_jobs_are_a_table_whose_ids_are_whole(run):
    ids = [str(an_id()) for _ in range(3)]
    lines = run("get", *ids).stdout.splitlines()
    assert lines[0].split() == ["id", "due", "state"]
    assert [line.split()[0] for line in lines[1:]] == ids
    assert [each["id"] for each in documents(run("get", *ids, "--json").stdout)] == ids


def test_of_several_jobs_each_that_is_not_found_is_told_and_the_highest_code_is_the_exit_code(run):
    result = run("get", str(an_id()), "nothing", "--json")
    assert result.exit_code == 3
    assert len(documents(result.stdout)) == 1
    assert of_stderr(result) == {
        "code": "job_not_found",
        "message": "no job has the id 'nothing': it is not of the form of an id",
        "id": "nothing",
    }


def test_jobs_are_cancelled(run, gate):
    ids = [str(an_id()), str(an_id())]
    result = run("cancel", *ids)
    assert (result.exit_code, result.stdout) == (0, f"{ids[0]}: cancelled\n{ids[1]}: cancelled\n")
    assert gate.asked[0].path == "/queues/emails/cancellations"
    (job,) = documents(run("cancel", ids[0], "--json").stdout)
    assert job == {"id": ids[0], "state": "cancelled"}


def test_a_job_that_may_be_in_its_queue_already_exits_4_and_says_so(run, gate):
    ids = [an_id(), an_id()]
    answers = [a_job_told(ids[0], "cancel_requested"), a_job_told(ids[1], "cancelled")]
    gate.api = lambda _: told({"jobs": answers})
    result = run("cancel", *map(str, ids))
    assert result.exit_code == 4
    assert "cancel_requested: it is or may be in its queue already" in result.stdout
    result = run("cancel", *map(str, ids), "--json")
    assert result.exit_code == 4
    assert [each["state"] for each in documents(result.stdout)] == ["cancel_requested", "cancelled"]


def test_a_job_is_moved(run, gate):
    old = str(an_id())
    result = run("reschedule", old, "--at", SOON.isoformat(), "--json")
    assert documents(result.stdout)[0]["due"] == SOON.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert (gate.asked[0].method, gate.asked[0].path) == ("PATCH", f"/queues/emails/jobs/{old}")
    assert run("reschedule", old).exit_code == 2


def test_jobs_run_now_and_one_that_is_on_its_way_exits_4(run, gate):
    ids = [str(an_id()), str(an_id())]
    (job,) = documents(run("run-now", ids[0], "--json").stdout)
    assert (gate.asked[0].method, gate.asked[0].json, job["id"] == ids[0]) == ("PATCH", {"delay": 0}, False)
    gate.script = [refused(409, "already_finished", "has left")]
    result = run("run-now", *ids)
    assert (result.exit_code, "has left" in result.stderr, "scheduled" in result.stdout) == (4, True, True)


# Jobs and queues


def listing(*payloads, next=None):
    jobs = [a_job_told(an_id(due=SOON), "scheduled") | payload for payload in payloads]
    return lambda _: told({"jobs": jobs, "next": next})


def test_scheduled_jobs_are_listed_with_their_payloads(run, gate):
    gate.api = listing({"payload": {"to": "[red]ann"}}, {"payload_text": "x\x1b[31m"}, {"payload": None})
    result = run("jobs", "emails", "--from", SOON.isoformat(), "--to", SOON.isoformat())
    assert result.exit_code == 0
    assert '{"to": "[red]ann"}' in result.stdout
    assert "\x1b" not in result.stdout
    assert "(in 3 h)" in result.stdout
    assert "from=" in gate.asked[0].path
    assert "to=" in gate.asked[0].path
    told_jobs = documents(run("jobs", "emails", "--json").stdout)
    assert [each.get("payload", "no") for each in told_jobs] == [{"to": "[red]ann"}, "no", None]
    assert told_jobs[1]["payload_text"] == "x\x1b[31m"


def test_a_payload_that_is_kept_elsewhere_is_told_by_its_place(run, gate):
    gate.api = listing({"payload_at": {"bucket": "b", "key": "k", "bytes": 7}})
    assert "7 bytes in s3://b/k" in run("jobs", "emails").stdout
    (job,) = documents(run("jobs", "emails", "--json").stdout)
    assert job["payload_at"] == {"bucket": "b", "key": "k", "bytes": 7}
    assert "payload" not in job


def test_no_more_is_listed_than_asked_for(run, gate):
    gate.api = listing(*[{"payload": n} for n in range(5)], next="more")
    assert len(documents(run("jobs", "emails", "--limit", "3", "--json").stdout)) == 3
    assert len(gate.asked) == 1
    assert "the first 3" in run("jobs", "emails", "--limit", "3").stdout


QUEUE = {"queue": "emails", "partitions": 4, "retention": 604_800, "precise": False, "priorities": 2, "track": False}
OVERVIEW = {
    "queue": "emails",
    "scheduled": 1000,
    "more_scheduled": True,
    "next_due": None,
    "fence_age": None,
    "waiting": 4,
    "in_flight": 5,
    "delayed": 6,
    "dead": 7,
    "paused": False,
    "rate": None,
    "levels": [{"waiting": 1, "in_flight": 2, "delayed": 3}, {"waiting": 3, "in_flight": 3, "delayed": 3}],
}


def test_queues_are_told(run, gate):
    gate.of_ids = told({"queues": [QUEUE]})
    assert re.search(r"emails +4 +2 +False +7 days", run("queues").stdout)
    assert documents(run("queues", "--json").stdout) == [{"queues": [QUEUE]}]


def test_a_queue_is_told_as_the_api_does(run, gate):
    gate.api = lambda _: told(OVERVIEW)
    (document,) = documents(run("queues", "emails", "--json").stdout)
    assert document == OVERVIEW
    text = run("queues", "emails").stdout
    assert re.search(r"scheduled +1000\+", text)
    assert re.search(r"2 +3 +3 +3", text)


@pytest.mark.parametrize(
    ("args", "method", "path", "body", "line"),
    [
        (["pause", "emails"], "POST", "/queues/emails/pause", None, "emails: running, rate 9/m; its workers"),
        (["resume", "emails"], "POST", "/queues/emails/resume", None, "emails: running, rate 9/m; its workers"),
        (["rate", "emails", "50/s"], "PUT", "/queues/emails/rate", {"rate": "50/s"}, "emails: running, rate 9/m; its"),
        (["rate", "emails", "0/s"], "PUT", "/queues/emails/rate", {"rate": "0/s"}, "emails: running, rate 9/m; its"),
        (["rate", "emails", "none"], "PUT", "/queues/emails/rate", {"rate": None}, "emails: running, rate 9/m; its"),
        (["rate", "emails"], "GET", "/queues/emails", None, "emails: running, rate 9/m\n"),
    ],
)
def test_workers_are_controlled(run, gate, args, method, path, body, line):
    gate.api = lambda _: told({**OVERVIEW, "paused": False, "rate": "9/m"})
    assert run(*args).stdout.startswith(line)
    (document,) = documents(run(*args, "--json").stdout)
    assert document == {"queue": "emails", "paused": False, "rate": "9/m"}
    assert [(each.method, each.path, each.json if each.body else None) for each in gate.asked] == [
        (method, path, body)
    ] * 2


def test_a_paused_queue_is_told_as_such(run, gate):
    gate.api = lambda _: told({"queue": "emails", "paused": True, "rate": None})
    assert run("pause", "emails").stdout == "emails: paused, rate none; its workers heed that within 5 s\n"


def test_a_rate_that_is_none_exits_2_and_nothing_is_asked(run, gate):
    assert run("rate", "emails", "fast").exit_code == 2
    assert gate.asked == []


def test_an_overview_tells_its_control(run, gate):
    gate.api = lambda _: told({**OVERVIEW, "paused": True, "rate": "5/s"})
    (document,) = documents(run("queues", "emails", "--json").stdout)
    assert (document["paused"], document["rate"]) == (True, "5/s")
    assert "control" not in document
    assert re.search(r"paused +True", run("queues", "emails").stdout)


# Worker


MODULE = """
import dueline

class Worker(dueline.Worker):
    def run(self, **given):
        print(sorted(given.items()))

worker = Worker()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of someone's, of whose modules none stays imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_a_worker_of_the_current_folder_is_run(folder):
    (folder / "theirs.py").write_text(MODULE)
    plain = typed("worker", "theirs:worker")
    assert plain.stdout == "[('concurrency', None), ('grace', 25.0), ('port', None), ('queues', None)]\n"
    options = ["--concurrency", "5", "--port", "8080", "--grace", "2.5", "--queue", "a", "--queue", "b"]
    given = typed("worker", "theirs:worker", *options)
    assert given.stdout == "[('concurrency', 5), ('grace', 2.5), ('port', 8080), ('queues', ['a', 'b'])]\n"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("theirs", "'theirs' names no worker: it must be MODULE:NAME"),
        ("nothing.there:worker", "there is no module 'nothing.there'"),
        ("theirs:nothing", "the module 'theirs' has no 'nothing'"),
        ("theirs:Worker.job", "the module 'theirs' has no 'Worker.job'"),
        ("theirs:number", "theirs:number is no dueline.Worker, but of type int"),
        ("broken:worker", "importing 'broken' failed: ZeroDivisionError: division by zero"),
        ("lacking:worker", "importing 'lacking' failed: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_a_worker_that_is_not_there_exits_2(folder, target, said):
    (folder / "theirs.py").write_text(MODULE + "number = 5\n")
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "lacking.py").write_text("import nowhere\n")
    result = typed("worker", target)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_worker_that_cannot_run_as_it_was_asked_to_exits_2(folder):
    (folder / "theirs.py").write_text("import dueline\nworker = dueline.Worker()\nworker.job('emails')(print)\n")
    result = typed("worker", "theirs:worker", "--queue", "invoices")
    assert result.exit_code == 2
    assert "queues are invoices: those with a handler are emails" in result.stderr


# Redrive


@pytest.fixture
def dead(monkeypatch):
    """The dead letters of emails and its queue, in memory: three of one error, one of another."""
    clock, wire = VirtualClock(datetime.now(UTC) - timedelta(hours=3)), Wire()
    emails = MemoryQueue(name="emails", clock=clock)
    ends = Ends(dead_letters=MemoryQueue(name="dead", clock=clock), queues=[wire.to("emails", emails)])
    for number, error in enumerate(["KeyError", "KeyError", "KeyError", "TypeError"]):
        told = {ID: str(an_id()), ERROR: error, REASON: "why\x9b31m"}
        ends.dead_letters.send([Message(body=str(number), attributes=told)])
    asked = []
    monkeypatch.setattr(connect, "dead_letters", lambda target, queue: asked.append((target, queue)) or ends)
    return SimpleNamespace(ends=ends, asked=asked, emails=emails, wire=wire)


def test_a_redrive_tells_and_moves_nothing(dead):
    result = typed("redrive", "emails")
    assert result.exit_code == 0
    assert re.search(r"KeyError +3 +.* \(3 h ago\)", result.stdout)
    assert "4 of 4 dead letters of queue emails: --apply puts them back" in result.stdout
    assert dead.asked == [(Target(), "emails")]
    assert len(dead.ends.dead_letters.deliveries) == 4
    (document,) = documents(typed("redrive", "emails", "--json").stdout)
    assert {name: document[name] for name in ("queue", "applied", "found", "wanted", "moved", "hidden")} == {
        "queue": "emails",
        "applied": False,
        "found": 4,
        "wanted": 4,
        "moved": 0,
        "hidden": 0,
    }
    assert [(each["error"], each["count"]) for each in document["by_error"]] == [("KeyError", 3), ("TypeError", 1)]
    assert set(document["by_error"][0]) == {"error", "count", "oldest", "newest"}


def test_a_redrive_moves_what_is_wanted(dead):
    result = typed("redrive", "emails", "--apply", "--yes", "--error", "KeyError", "--limit", "2")
    assert (result.exit_code, "2 put back" in result.stdout) == (0, True)
    assert len(dead.emails.deliveries) == 2
    (document,) = documents(typed("redrive", "emails", "--apply", "--yes", "--json").stdout)
    assert (document["applied"], document["moved"]) == (True, 2)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--older-than", "2h"], 4),
        (["--older-than", "4h"], 0),
        (["--younger-than", "4h"], 4),
        (["--younger-than", "2h"], 0),
        (["--error", "TypeError", "--error", "KeyError"], 4),
        (["--reason", "why"], 4),
        (["--reason", "because"], 0),
        (["--id", "none"], 0),
    ],
)
def test_filters_are_heeded(dead, options, count):
    (document,) = documents(typed("redrive", "emails", "--json", *options).stdout)
    assert document["wanted"] == count


@pytest.mark.parametrize(("answer", "moved"), [("y\n", 4), ("n\n", 0)])
def test_it_asks_before_it_moves(dead, monkeypatch, answer, moved):
    monkeypatch.setattr(redrive, "can_ask", lambda: True)
    result = typed("redrive", "emails", "--apply", stdin=answer)
    assert result.exit_code == 0
    assert "Put them back?" in result.stderr
    assert len(dead.emails.deliveries) == moved


def test_for_machines_it_never_asks(dead, monkeypatch):
    monkeypatch.setattr(redrive, "can_ask", lambda: True)
    result = typed("redrive", "emails", "--apply", "--json")
    assert (result.exit_code, of_stderr(result)["code"]) == (2, "usage")


def test_what_sqs_does_not_take_is_told_and_exits_1(dead):
    dead.wire.around = on("emails.send", refusing(lambda message: message.body == "1"))
    result = typed("redrive", "emails", "--apply", "--yes", "--json")
    (document,) = documents(result.stdout)
    assert (result.exit_code, document["moved"]) == (1, 3)
    assert document["failed"] == [{"reason": "no", "count": 1}]
    result = typed("redrive", "emails", "--apply", "--yes")
    assert (result.exit_code, "1 stay: no" in result.stdout) == (1, True)


def test_a_redrive_that_is_interrupted_leaves_the_rest_visible_and_exits_130(dead):
    dead.wire.around = on("emails.send", failing(KeyboardInterrupt()))
    result = typed("redrive", "emails", "--apply", "--yes")
    assert (result.exit_code, result.stderr) == (130, "dueline: interrupted\n")
    assert dead.ends.dead_letters.depth().waiting == 4


def test_sigterm_ends_a_redrive_in_order(dead):
    before = signal.getsignal(signal.SIGTERM)

    def terminated(call):
        os.kill(os.getpid(), signal.SIGTERM)
        return straight(call)

    dead.wire.around = on("emails.send", terminated)
    result = typed("redrive", "emails", "--apply", "--yes", "--error", "KeyError")
    assert (result.exit_code, result.stderr) == (130, "dueline: interrupted\n")
    assert len(dead.emails.deliveries) == 3
    assert dead.ends.dead_letters.depth().waiting == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_parked_jobs_go_through_the_inbound_queue(dead):
    job = a_job()
    dead.ends.dead_letters.deliveries.clear()
    dead.ends.dead_letters.send([Message.of(job).with_reason("gone")])
    (document,) = documents(typed("redrive", "--parked", "--queue", "invoices", "--json").stdout)
    assert (document["queue"], document["wanted"]) == (None, 0)
    (document,) = documents(typed("redrive", "--parked", "--queue", "emails", "--apply", "--yes", "--json").stdout)
    assert document["by_error"][0]["error"] == "gone"
    assert document["moved"] == 1
    assert dead.asked[-1] == (Target(), None)


# Without what it needs, and as a process


def test_without_typer_it_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from dueline.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the command line needs typer and rich: pip install 'dueline[cli]'\n"


def test_as_a_process_it_shows_no_traceback_and_returns_its_code():
    done = subprocess.run(
        [sys.executable, "-m", "dueline", "get", "x", "--url"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    help = subprocess.run([sys.executable, "-m", "dueline"], cwd=ROOT, capture_output=True, text=True)
    assert (help.returncode, "redrive" in help.stdout) == (0, True)


@pytest.mark.parametrize("command", ["--version", "queues --help", "schedules get --help", "get x --url nowhere"])
def test_a_command_imports_nothing_that_others_alone_need(command):
    code = f"""if True:
        import sys
        from dueline.cli import main
        sys.argv[1:] = {command.split()}
        main()
        print(*sys.modules, sep="\\n", file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    rooms = {".".join(name.split(".")[:2]) for name in done.stderr.splitlines()}
    assert "dueline.cli" in rooms
    assert not rooms & {"boto3", "dueline.aws", "dueline.console", "dueline.doctor", "dueline.verify", "dueline.worker"}


def test_every_command_is_one_of_typers():
    assert set(get_command(app).commands) == {*COMMANDS, "schedules"}
