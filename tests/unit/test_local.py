"""The local run, without what it runs: who is up, and what a wrong queues.yaml says."""

import os
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import typer
import yaml

import local.__main__ as main
from dueline.config.yaml_file import ConfigurationError
from local.running import AlreadyUp, pid_file, pid_of
from local.signing_proxy import signing_proxy
from local.template import configure
from tests.fake_api_server import fake_api_server, json_reply
from tests.waiting import HANG_SECONDS


@pytest.fixture
def note(tmp_path, monkeypatch):
    path = tmp_path / "home" / "up.pid"
    monkeypatch.setattr(main, "PID", path)
    return path


@pytest.fixture
def bystander():
    """A process that has nothing to do with it."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate(b"\n")


def test_down_spares_a_process_with_a_stale_pid(note, bystander, monkeypatch, capsys):
    killed = []
    monkeypatch.setattr(os, "kill", lambda pid, signal: signal and killed.append(pid))
    monkeypatch.setattr(main, "_STOP_SECONDS", 0)
    note.parent.mkdir()
    note.write_text(str(bystander.pid))
    main.down()
    assert killed == []
    assert "it is not up" in capsys.readouterr().out


def test_second_up_is_refused_while_the_first_runs(note):
    with pid_file(note):
        assert pid_of(note) == os.getpid()
        with pytest.raises(AlreadyUp, match=f"up already, as process {os.getpid()}: end that with `make down`"):
            pid_file(note).__enter__()
        assert pid_of(note) == os.getpid()
    assert pid_of(note) is None


def test_stale_pid_file_does_not_block(note, bystander):
    note.parent.mkdir()
    note.write_text(str(bystander.pid))
    with pid_file(note):
        assert pid_of(note) == os.getpid()


def test_killed_process_is_not_up(note):
    code = (
        "import sys, pathlib, local.running\n"
        "with local.running.pid_file(pathlib.Path(sys.argv[1])):\n  print(1, flush=True); input()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(note)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    assert pid_of(note) == process.pid
    process.kill()
    process.communicate()
    assert pid_of(note) is None
    assert note.read_text() == str(process.pid)


def test_up_twice_says_so(note, monkeypatch, capsys):
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    with pid_file(note), pytest.raises(typer.Exit) as ended:
        main.up(tick="fast")
    assert ended.value.exit_code == 1
    assert f"it is up already, as process {os.getpid()}" in capsys.readouterr().err


def _configured(tmp_path, text):
    queues = tmp_path / "queues.yaml"
    queues.write_text(text)
    return configure(queues, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- emails", "it holds ['emails'], not settings"),
        ("hello", "it holds 'hello', not settings"),
        ("queues: [", "not YAML"),
        ("queues:\n\temails:", "not YAML"),
        ("queues:\n  emails:\n  emails:\n    partitions: 2\n", "line 2: emails is given twice"),
        ("queues:\n  emails:\n    partitions: 0\n", "queues.emails.partitions is 0"),
        ("lookahead: 5", "lookahead is 5"),
    ],
)
def test_wrong_queues_yaml_is_named(tmp_path, text, reason):
    with pytest.raises(ConfigurationError) as refusal:
        _configured(tmp_path, text)
    assert str(refusal.value).startswith(f"{tmp_path / 'queues.yaml'}: ")
    assert reason in str(refusal.value)


def test_local_run_has_its_own_periods(tmp_path):
    settings = yaml.safe_load(_configured(tmp_path, "name: mine\nlookahead: 300\n").read_text())
    assert (settings["name"], settings["tick_period"], settings["lookahead"]) == ("mine", 1, 19)


def test_trailing_blank_of_a_header_is_dropped():
    with fake_api_server() as api_server, signing_proxy(api_server.url) as url:
        api_server.script = [json_reply({})]
        connection = HTTPConnection(urlsplit(url).netloc, timeout=HANG_SECONDS)
        connection.putrequest("GET", "/queues/emails")
        connection.putheader("If-Match", '"1-2" ')
        connection.endheaders()
        with closing(connection.getresponse()) as answer:
            answer.read()
        connection.close()
    assert api_server.requests[0].headers["if-match"] == '"1-2"'
