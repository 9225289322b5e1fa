"""How a local run ends, wherever it was started."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer import Exit

from local import __main__ as main
from local.__main__ import _plain_errors
from local.emulator import Emulator

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


def test_emulator_whose_folder_was_removed_is_killed(tmp_path: Path) -> None:
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
