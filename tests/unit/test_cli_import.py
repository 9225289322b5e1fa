"""`dueline schedule --lines`, where it is interrupted, fails half-way, or is continued."""

import json
import shlex
import signal
import uuid
from collections import Counter
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from dueline import Client, Patience
from dueline.cli import connect, import_command, options
from dueline.cli.app import app
from dueline.cli.import_command import ImportIds
from dueline.cli.screen import Screen
from dueline.client.job_ids import IdParameters
from dueline.core.clock import TimeBounds
from dueline.core.job import Route
from dueline.errors import InvalidJob
from tests.builders import NOW
from tests.fake_api_server import default_reply, json_reply, problem, problem_reply

OF_IDS = json_reply({"queues": [{"queue": "emails", "taking": 4, "direct_horizon": 890}]})
NUMBER = uuid.UUID("5f0f3f5e-0000-4000-8000-000000000000")
SECOND = timedelta(seconds=1)
TERMS = IdParameters(
    partitions=8, direct_horizon=timedelta(seconds=890), moment=TimeBounds(earliest=NOW, latest=NOW + SECOND)
)


@pytest.fixture
def schedule(api_server, monkeypatch, tmp_path):
    """`dueline schedule emails … --lines`, in an empty folder, by a client that tries once."""
    monkeypatch.chdir(tmp_path)
    connected = connect.client
    monkeypatch.setattr(
        connect, "client", lambda target, patience=None: Client(connected(target)._api, patience=Patience(attempts=1))
    )

    def schedule(*args, stdin=None):
        return CliRunner().invoke(app, ["--url", api_server.url, "schedule", "emails", *args], input=stdin)

    return schedule


def refusing(*failed):
    """Answer as the API does, but refuse these keys."""

    def answer(request):
        jobs = json.loads(default_reply(request).body)["jobs"]
        for n, job in enumerate(request.json["jobs"]):
            if job["idempotency_key"] in failed:
                jobs[n] = {"error": problem(503, "unavailable", f"no to {job['idempotency_key']}")}
        return json_reply({"jobs": jobs})

    return answer


KEPT = ("-", "--lines", "--idempotency-key", "k", "--left", "left")


@pytest.mark.parametrize(("of_ids", "name"), [(json_reply({"queues": []}), "idempotency_key"), (OF_IDS, "id")])
def test_printed_command_continues_the_import(schedule, api_server, of_ids, name):
    api_server.queues_reply, api_server.script = of_ids, [problem_reply(503, "unavailable")]
    lines = '{"n": 1}\n\n{"n": "é"}\r\n{"n": 4}'
    result = schedule("-", "--lines", "--priority", "2", "--delay", "3h", stdin=lines)
    (file,) = Path().glob("dueline-left-*.jsonl")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ('{"n": 1}\n\n{"n": "é"}\n{"n": 4}\n', 0o600)
    command = shlex.split(result.stderr.splitlines()[-1].partition(": dueline ")[2])
    again = CliRunner().invoke(app, command)
    assert (again.exit_code, again.stdout, again.stderr) == (0, "scheduled 3 of 3\n", "")
    first, second = (request.json["jobs"] for request in api_server.requests)
    assert first == second
    assert len({job[name] for job in first}) == 3
    assert list(Path().iterdir()) == [file]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_import_keeps_its_lines(schedule, monkeypatch, ending):
    noted = import_command.Import._note

    def interrupted(self, result, number):
        if number == 3:
            signal.raise_signal(ending)
        noted(self, result, number)

    monkeypatch.setattr(import_command.Import, "_note", interrupted)
    result = schedule(*KEPT, stdin="1\n2\n3\n4\n")
    assert (result.exit_code, result.stdout) == (130, "scheduled 2 of 4\n")
    assert Path("left").read_text() == "\n\n3\n4\n"
    assert result.stderr.splitlines()[-1] == "dueline: interrupted"


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenPipeError])
def test_lines_are_kept_when_stderr_fails(schedule, api_server, monkeypatch, error):
    api_server.respond = refusing("k-2")
    monkeypatch.setattr(Screen, "error", Mock(side_effect=error))
    schedule(*KEPT, "--json", stdin="1\n2\n3\n4\n")
    assert Path("left").read_text() == "\n2\n3\n4\n"


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_signals_do_not_cut_off_the_left_file(schedule, api_server, monkeypatch, ending):
    api_server.respond = lambda _: problem_reply(503, "unavailable")
    write = import_command._write

    def disturbed(path, left):
        def signalled():
            for number, line in left:
                signal.raise_signal(ending)
                assert not Path("left").exists()
                yield number, line

        write(path, signalled())

    # By default SIGTERM would end the tests.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    monkeypatch.setattr(import_command, "_write", disturbed)
    try:
        result = schedule(*KEPT, stdin="1\n2\n3\n")
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (result.exit_code, result.stdout) == (1, "scheduled 0 of 3\n")
    assert Path("left").read_text() == "1\n2\n3\n"
    assert [str(each) for each in Path().iterdir()] == ["left"]


def test_lines_that_cannot_be_kept_can_be_sent_again(schedule, api_server, monkeypatch):
    monkeypatch.setattr(import_command, "_write", Mock(side_effect=OSError(28, "No space left on device")))
    api_server.respond = lambda _: json_reply(problem(503, "unavailable", "lost"), 503)
    result = schedule(*KEPT, stdin="1\n2\n")
    assert "2 lines left; left could not be written: No space left on device" in result.stderr
    assert result.stderr.splitlines()[-1].endswith("schedule emails - --lines --idempotency-key k")


def test_deployment_is_found_before_stdin_is_read(monkeypatch):
    monkeypatch.setattr(options, "source", Mock(side_effect=AssertionError))
    line = ["schedule", "emails", "-", "--lines"]
    assert CliRunner().invoke(app, ["--profile", "nobodys", *line], input="1\n").exit_code == 5
    assert CliRunner().invoke(app, ["--url", "http://127.0.0.1:9", "schedule", "EMAILS", *line[2:]]).exit_code == 3


def test_closed_stdin_is_wrong_usage(schedule, monkeypatch):
    monkeypatch.setattr("dueline.cli.options.sys", SimpleNamespace(stdin=None))
    for result in (schedule("-"), schedule("-", "--lines")):
        assert (result.exit_code, "which is stdin, and that is closed" in result.stderr) == (2, True)


def test_too_long_key_is_refused_at_once(schedule, api_server):
    result = schedule("-", "--lines", "--idempotency-key", "k" * 253, stdin="1\n" * 10)
    assert (result.exit_code, "1 to 255 printable" in result.stderr) == (2, True)
    assert api_server.requests == list(Path().iterdir()) == []


def test_lines_beyond_memory_are_all_sent(schedule, api_server, monkeypatch):
    monkeypatch.setattr(import_command, "_HELD_BYTES", 100)
    result = schedule("-", "--lines", stdin="".join(f'{{"n": {n}}}\n' for n in range(2000)))
    assert (result.exit_code, result.stdout) == (0, "scheduled 2,000 of 2,000\n")
    sent = [job["payload"]["n"] for request in api_server.requests for job in request.json["jobs"]]
    assert sorted(sent) == list(range(2000))


# Ids


def ids(*, at=None, delay=None):
    return ImportIds.create(NUMBER, TERMS, at=at, delay=delay)


def test_token_holds_all_ids():
    created = ids(delay=timedelta(hours=1))
    assert ImportIds.parse(str(created)) == created
    assert str(created) == f"{NUMBER}.8.t.{int((NOW + SECOND).timestamp() * 1000) + 3_600_000}"


@pytest.mark.parametrize(
    ("time", "due", "route"),
    [
        ({}, NOW, Route.DIRECT),
        ({"at": NOW - 9 * SECOND}, NOW, Route.DIRECT),
        ({"at": NOW + timedelta(seconds=889.9995)}, NOW + timedelta(seconds=890), Route.DIRECT),
        ({"delay": 890 * SECOND}, NOW + 891 * SECOND, Route.TABLE),
    ],
)
def test_all_lines_have_one_due_time_and_route(time, due, route):
    created = ids(**time)
    assert {(id.due, id.route) for line in (1, 99, 12_345) for id in [created.id("emails", line)]} == {(due, route)}


def test_a_hundred_lines_share_a_partition():
    created = ids()
    partitions = [created.id("emails", line).partition.number for line in range(0, 80_000, 50)]
    assert partitions[0::2] == partitions[1::2]
    assert sorted(Counter(partitions)) == list(range(8))
    assert min(Counter(partitions).values()) > 140


def test_due_time_out_of_range_is_refused_by_name():
    with pytest.raises(InvalidJob, match=r"^at is 20"):
        ids(at=NOW + timedelta(days=4000))
