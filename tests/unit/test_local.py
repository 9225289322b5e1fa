"""The local run: who is up, how it ends, and what it synthesizes and reports."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import yaml
from typer import Exit

import local.__main__ as main
from local.__main__ import _plain_errors
from local.demonstration import Landed, Scheduled, Summary, summary_of
from local.emulator import Emulator
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


def test_second_up_is_refused(note):
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


def _configured(tmp_path, text):
    queues = tmp_path / "queues.yaml"
    queues.write_text(text)
    return configure(queues, out=tmp_path / "out")


def test_local_run_has_its_own_periods(tmp_path):
    settings = yaml.safe_load(_configured(tmp_path, "name: mine\nlookahead: 300\n").read_text())
    assert (settings["name"], settings["tick_period"], settings["lookahead"]) == ("mine", 2, 21)


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


# How it ends


ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in ENDINGS}
    yield
    for each, heard in before.items():
        signal.signal(each, heard)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_background_run_ends_on_a_signal(ending: signal.Signals) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(Exit) as ended, _plain_errors():
        os.kill(os.getpid(), ending)
    assert ended.value.exit_code == 130


def test_removed_folder_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    for name in ("PID", "ENDPOINTS", "PORT", "STATE"):
        monkeypatch.setattr(main, name, home / name)
    monkeypatch.setattr(main, "HOME", home)
    endpoints = SimpleNamespace(write=lambda _: shutil.rmtree(home), api="", docs="")
    monkeypatch.setattr(main, "running", lambda *_, **__: nullcontext(SimpleNamespace(endpoints=endpoints)))
    with pytest.raises(Exit) as ended:
        main.up(tick="fast")
    assert ended.value.exit_code == 1


def test_emulator_without_its_folder_is_killed(tmp_path: Path) -> None:
    """It would wait for minutes to write its state."""
    emulator = Emulator(log=tmp_path / "log", state=tmp_path / "removed" / "state")
    ends_in_order = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print(flush=True); input()"
    )
    command = [sys.executable, "-c", ends_in_order]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        process.stdout.readline()  # type: ignore[union-attr]
        emulator._process = process
        emulator.stop()
    assert process.returncode == -signal.SIGKILL


def test_hangup_ends_it_but_not_under_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with _plain_errors():
        os.kill(os.getpid(), signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pytest.raises(Exit), _plain_errors():
        os.kill(os.getpid(), signal.SIGHUP)


# The summary of the demonstration


DUE = datetime(2026, 11, 21, tzinfo=UTC)


def scheduled(*lateness: float, cancelled: bool = False) -> Scheduled:
    landed = [Landed(id="id", payload="1", due=DUE, at=DUE + timedelta(seconds=seconds)) for seconds in lateness]
    return Scheduled(what="", queue="emails", id="id", due=DUE, route="table", cancelled=cancelled, landed=landed)


def test_run_without_a_broken_promise_is_good() -> None:
    summary = summary_of([scheduled(0.1), scheduled(0.9), scheduled(cancelled=True)])
    assert summary.is_good
    assert (summary.scheduled, summary.delivered, summary.cancelled) == (3, 2, 1)
    assert (summary.p50, summary.p95, summary.longest) == pytest.approx((0.1, 0.9, 0.9))


@pytest.mark.parametrize(
    ("job", "named"), [(scheduled(), "lost"), (scheduled(-0.1), "early"), (scheduled(0.1, cancelled=True), "broken")]
)
def test_broken_promise_makes_a_run_bad(job: Scheduled, named: str) -> None:
    summary: Summary = summary_of([scheduled(0.1), job])
    assert not summary.is_good
    assert getattr(summary, named) == 1
