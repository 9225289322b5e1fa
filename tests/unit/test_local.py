"""The local run: who is up, how it ends, and what it synthesizes and reports."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer import Exit

import local.__main__ as main
from dueline import Job, State
from dueline.core.job import Route
from local import template
from local.__main__ import _plain_errors
from local.demonstration import Shown, summary_of
from local.deploy import DeploymentError
from local.emulator import free_port
from local.forked_functions import start
from local.running import pid_file, pid_of
from local.template import ROOT, configure, synthesized


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PID", "ENV", "PORT", "STATE"):
        monkeypatch.setattr(main, name, tmp_path / name)
    monkeypatch.setattr(main, "HOME", tmp_path)
    return tmp_path


def test_down_spares_a_process_with_a_stale_pid(home, monkeypatch, capsys):
    killed = []
    monkeypatch.setattr(os, "kill", lambda pid, signal: signal and killed.append(pid))
    main.PID.write_text(str(os.getpid()))
    main.down()
    assert killed == []
    assert "it is not up" in capsys.readouterr().out


def test_second_up_is_refused(tmp_path):
    note = tmp_path / "home" / "up.pid"
    with pid_file(note):
        with pytest.raises(DeploymentError, match=f"up already, as process {os.getpid()}: end that with `make down`"):
            pid_file(note).__enter__()
        assert pid_of(note) == os.getpid()
    assert pid_of(note) is None


def _configured(tmp_path, text):
    queues = tmp_path / "queues.yaml"
    queues.write_text(text)
    return configure(queues, out=tmp_path / "out")


APP = "import os; os.mkdir(os.environ['CDK_OUTDIR'])"
CHANGES = ("", "app.py", "dueline/new.py", "settings", "CDK_DEFAULT_REGION", "a library")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def clone(tmp_path, cache, monkeypatch):
    """A clone whose app.py makes an empty folder of its synthesis."""
    (tmp_path / "clone" / "dueline").mkdir(parents=True)
    monkeypatch.setattr(template, "ROOT", tmp_path / "clone")
    monkeypatch.setattr(template, "get_path", lambda _: cache)
    (tmp_path / "clone" / "cdk.json").write_text('{"context": {}}')
    (tmp_path / "clone" / "app.py").write_text(APP)
    return tmp_path / "clone"


@pytest.mark.parametrize("changed", CHANGES)
def test_only_what_changed_is_synthesized_again(clone, cache, tmp_path, monkeypatch, changed):
    configured = _configured(tmp_path, "name: mine\n")
    before = synthesized(configured, cache=cache)
    match changed:
        case "":
            monkeypatch.setattr(template, "synthesize", pytest.fail)
        case "a library":
            monkeypatch.setattr(template, "get_path", lambda _: tmp_path)
            (tmp_path / "aws_cdk_lib-9.dist-info").mkdir()
        case "settings":
            configured = _configured(tmp_path, "name: other\n")
        case "CDK_DEFAULT_REGION":
            monkeypatch.setenv(changed, "eu-west-1")
        case file:
            (clone / file).write_text(f"{APP}  # now")
    after = synthesized(configured, cache=cache)
    assert (after == before) is (changed == "")
    assert [*cache.iterdir()] == [after]


# Its ports


def test_ports_are_fixed_and_kept_with_the_jobs(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "is_free", lambda _: True)
    assert main._first_port(None) == 4566
    assert main._first_port(7000) == 7000
    assert main._first_port(None) == 4566  # no jobs are kept
    (home / "STATE").mkdir()
    assert main._first_port(None) == 4566
    with pytest.raises(Exit):
        main._first_port(7000)
    expected = f"DUELINE_PORT is 7000, but the jobs in {home} are kept for 4566: set that, or remove {home}\n"
    assert capsys.readouterr().err == expected


def test_env_of_nothing_says_what_starts_it(tmp_path: Path) -> None:
    command, env = ["make", "-s", "env"], {**os.environ, "DUELINE_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (2, "", "it is not up: `make up` starts it")


@pytest.mark.parametrize(("number", "whose"), [(0, "the local AWS"), (1, "the API")])
def test_port_in_use_is_named(home: Path, capsys: pytest.CaptureFixture[str], number: int, whose: str) -> None:
    with socket.socket() as other:
        port = free_port()
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(Exit):
            main._first_port(port - number)
    error = capsys.readouterr().err
    assert error.startswith(
        f"port {port}, of {whose}, is in use: end what listens there, or set the first of three free ports: "
    )
    assert error.endswith("make up DUELINE_PORT=14566\n")
    assert not (home / "PORT").exists()


# How it ends


ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in ENDINGS}
    yield
    for each, heard in before.items():
        signal.signal(each, heard)


@pytest.mark.parametrize("ending", ENDINGS)
def test_background_run_ends_on_a_signal(ending: signal.Signals) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(Exit) as ended, _plain_errors():
        os.kill(os.getpid(), ending)
    assert ended.value.exit_code == 130


# The summary of the demonstration


def shown(state: State, **about: bool) -> Shown:
    job = Job(id="", queue="emails", due=datetime(2026, 11, 21, tzinfo=UTC), route=Route.TABLE, state=state)
    return Shown(what="welcome ann", job=job, **about)


GOOD = [shown(State.SUCCEEDED), shown(State.CANCELLED, is_cancelled=True)]


@pytest.mark.parametrize(
    ("jobs", "early", "faults"),
    [
        ([], 0, "lost 0  early 0  started after a cancel 0"),
        ([], 1, "lost 0  early 1  started after a cancel 0"),
        ([shown(State.DISPATCHED)], 0, "lost 1  early 0  started after a cancel 0"),
        ([shown(State.RUNNING, is_cancelled=True)], 0, "lost 0  early 0  started after a cancel 1"),
    ],
)
def test_run_with_a_fault_exits_with_1(
    jobs: list[Shown], early: int, faults: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played = SimpleNamespace(play=lambda: summary_of(GOOD + jobs, early=early))
    monkeypatch.setattr(main, "running", lambda *_, **__: nullcontext(SimpleNamespace(tick_faults=[])))
    monkeypatch.setattr(main, "Demonstration", lambda *_, **__: played)
    with pytest.raises(Exit) as ended:
        main.run()
    assert ended.value.exit_code == bool(jobs or early)
    assert faults in capsys.readouterr().out


def test_forks_find_libraries_in_memory(tmp_path):
    """A module that cannot be imported for them is passed over in silence."""
    program = tmp_path / "program.py"
    program.write_text("import sys; print({'local.botocore_data', 'pydantic', 'cronsim'} - {*sys.modules})")
    process = start([sys.executable, str(program)], cwd=str(tmp_path), env=dict(os.environ))
    with process.stdin, process.stdout, process.stderr:
        assert (process.stdout.read(), process.stderr.read(), process.wait()) == ("set()\n", "", 0)
