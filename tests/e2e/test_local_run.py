"""The local run, as a newcomer starts it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.template import ROOT
from tests.e2e.inbox import wait_until
from tests.e2e.newcomer import local

SET_UP_SECONDS = 60


@contextmanager
def up(home: Path) -> Iterator[dict[str, Any]]:
    """Stay up while the context lasts; `down` must end it in order."""
    endpoints = home / "endpoints.json"
    process = local("up", home)
    try:
        assert wait_until(lambda: endpoints.exists() or process.poll() is not None, seconds=SET_UP_SECONDS)
        yield json.loads(endpoints.read_text())
        down = local("down", home)
        assert down.communicate()[0] == "down\n"
        assert process.wait(5) == 0
        assert not endpoints.exists()
    finally:
        process.terminate()
        process.communicate()


def test_it_shows_its_docs_and_its_state_survives_a_restart_and_ingest_goes_on(tmp_path: Path) -> None:
    with up(tmp_path) as endpoints:
        assert endpoints["docs"] == f"{endpoints['api']}/docs"
        assert "SwaggerUIBundle" in httpx.get(endpoints["docs"]).text
        assert _speaks_to_it(tmp_path)
        before = _scheduled(endpoints)
    with up(tmp_path) as endpoints:
        assert _state(endpoints, before) == "scheduled"
        _scheduled(endpoints)
    assert not _left_running(tmp_path)
    assert local("env", tmp_path).communicate()[0] == "it is not up: `make up` starts it\n"


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_leave_nothing_running(ending: signal.Signals, tmp_path: Path) -> None:
    process = local("run", tmp_path)
    assert process.stdout is not None
    assert any(line.startswith("start the local AWS") for line in process.stdout)
    process.send_signal(ending)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert not _left_running(tmp_path)


def test_the_demonstration_delivers_what_it_should(tmp_path: Path) -> None:
    demonstration = local("run", tmp_path)
    told, _ = demonstration.communicate(timeout=120)
    assert demonstration.returncode == 0, told
    assert "scheduled 7  delivered 5  cancelled 2  lost 0  early 0  delivered after a cancel 0" in told
    assert "refused with 400" in told


def _speaks_to_it(home: Path) -> bool:
    """Type what `up` says about the command line, over HTTP and straight on SQS, which a redrive needs."""
    typed = f'eval "$({sys.executable} -m local env)"; {sys.executable} -m dueline'
    script = f"{typed} schedule emails 1 --delay 1h && {typed} redrive emails --json"
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env |= {"DUELINE_HOME": str(home)}
    told = subprocess.run(["/bin/sh", "-ec", script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    return told.returncode == 0 and '"found": 0' in told.stdout


def _scheduled(endpoints: dict[str, Any]) -> str:
    """Schedule a job far ahead, wait until ingest has it in the table, and return its id."""
    answer = httpx.post(f"{endpoints['api']}/queues/emails/jobs", json={"payload": 1, "delay": 3600}, timeout=30)
    id = str(answer.json()["id"])
    assert wait_until(lambda: _state(endpoints, id) == "scheduled", seconds=20)
    return id


def _state(endpoints: dict[str, Any], id: str) -> str:
    return str(httpx.get(f"{endpoints['api']}/queues/emails/jobs/{id}", timeout=30).json()["state"])


def _left_running(home: Path) -> list[str]:
    """Return the processes that were started with this home and still run."""
    marked = f"DUELINE_HOME={home}".encode()
    return [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if marked in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
