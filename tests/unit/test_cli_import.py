"""`dueline schedule --lines`, where it is interrupted, fails half-way, or is continued."""

import signal
from collections import Counter
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from dueline import Client, Patience
from dueline.cli import connect, import_command, options
from dueline.cli.app import app
from dueline.cli.import_command import ids_of_run
from dueline.client.job_ids import IdParameters
from dueline.core.clock import TimeBounds
from dueline.errors import InvalidJob
from tests.builders import NOW
from tests.fake_api_server import json_reply, problem_reply

OF_IDS = json_reply({"queues": [{"queue": "emails", "taking": 4, "direct_horizon": 890}]})
SECOND = timedelta(seconds=1)
TERMS = IdParameters(
    partitions=8, direct_horizon=timedelta(seconds=890), moment=TimeBounds(earliest=NOW, latest=NOW + SECOND)
)


@pytest.fixture
def schedule(api_server, monkeypatch):
    """`dueline schedule emails … --lines`, by a client that tries once."""
    connected = connect.client
    monkeypatch.setattr(
        connect, "client", lambda target, patience=None: Client(connected(target)._api, patience=Patience(attempts=1))
    )

    def schedule(*args, stdin=None):
        return CliRunner().invoke(app, ["--url", api_server.url, "schedule", "emails", *args], input=stdin)

    return schedule


@pytest.mark.parametrize(
    ("of_ids", "delay", "name"),
    [(json_reply({"queues": []}), "3h", "idempotency_key"), (OF_IDS, "1m", "idempotency_key"), (OF_IDS, "3h", "id")],
    ids=["unknown ids", "due soon", "ids"],
)
def test_printed_option_continues_the_import(schedule, api_server, of_ids, delay, name):
    api_server.queues_reply, api_server.script = of_ids, [problem_reply(503, "unavailable")]
    lines = '{"n": 1}\n\n{"n": "é"}\r\n{"n": 4}'
    result = schedule("-", "--lines", "--delay", delay, stdin=lines)
    option = result.stderr.splitlines()[-1].rpartition(" with ")[2].split()
    time = [] if name == "id" else ["--delay", delay]
    again = schedule("-", "--lines", *time, *option, stdin=lines)
    assert (again.exit_code, again.stdout, again.stderr) == (0, "scheduled 3 of 3\n", "")
    first, second = (request.json["jobs"] for request in api_server.requests)
    assert first == second
    assert len({job[name] for job in first}) == 3


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_import_says_how_to_continue(schedule, monkeypatch, ending):
    noted = import_command.Import._note

    def interrupted(self, result, number):
        if number == 3:
            signal.raise_signal(ending)
        noted(self, result, number)

    monkeypatch.setattr(import_command.Import, "_note", interrupted)
    result = schedule("-", "--lines", "--idempotency-key", "k", stdin="1\n2\n3\n4\n")
    assert (result.exit_code, result.stdout) == (130, "scheduled 2 of 4\n")
    left, last = result.stderr.splitlines()
    assert left.startswith("dueline: 2 lines left; to continue, with none scheduled twice")
    assert last == "dueline: interrupted"


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
    assert api_server.requests == []


def test_too_large_line_is_refused_before_any_is_sent(schedule, api_server):
    result = schedule("-", "--lines", stdin=f'1\n"{"é" * 1_747_627}"\n')
    assert (result.exit_code, "line 2 has over 10485760 bytes of JSON" in result.stderr) == (2, True)
    assert api_server.requests == []


def test_lines_beyond_memory_are_all_sent(schedule, api_server, monkeypatch):
    monkeypatch.setattr(import_command, "_HELD_BYTES", 100)
    result = schedule("-", "--lines", stdin="".join(f'{{"n": {n}}}\n' for n in range(2000)))
    assert (result.exit_code, result.stdout) == (0, "scheduled 2,000 of 2,000\n")
    sent = [job["payload"]["n"] for request in api_server.requests for job in request.json["jobs"]]
    assert sorted(sent) == list(range(2000))


# Ids


def ids(*, at=None, delay=None):
    return ids_of_run(TERMS, at=at, delay=delay)


@pytest.mark.parametrize(
    "time", [{}, {"at": NOW - 9 * SECOND}, {"at": NOW + timedelta(seconds=889.9995)}, {"delay": 889 * SECOND}]
)
def test_lines_due_soon_have_no_ids(time):
    assert ids(**time) is None


def test_a_hundred_lines_share_a_partition():
    created = ids(delay=timedelta(hours=1))
    partitions = [created.id("emails", line).partition.number for line in range(0, 80_000, 50)]
    assert partitions[0::2] == partitions[1::2]
    assert sorted(Counter(partitions)) == list(range(8))
    assert min(Counter(partitions).values()) > 140


def test_due_time_out_of_range_is_refused_by_name():
    with pytest.raises(InvalidJob, match=r"^at is 20"):
        ids(at=NOW + timedelta(days=4000))
