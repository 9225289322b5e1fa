"""The local run, as a newcomer starts it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from local.running import HOME
from local.template import ROOT
from tests.e2e.inbox import wait_until

ENDPOINTS = HOME / "endpoints.json"
LOCAL = [sys.executable, "-m", "local"]
SET_UP_SECONDS = 60


@contextmanager
def up() -> Iterator[dict[str, Any]]:
    """Stay up while the context lasts; `down` must end it in order."""
    process = subprocess.Popen([*LOCAL, "up"], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: ENDPOINTS.exists() or process.poll() is not None, seconds=SET_UP_SECONDS)
        yield json.loads(ENDPOINTS.read_text())
        subprocess.run([*LOCAL, "down"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        assert process.wait(5) == 0
        assert not ENDPOINTS.exists()
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module", autouse=True)
def not_up_already() -> None:
    if ENDPOINTS.exists():
        pytest.fail("a local run is up: end it with `make down` before the tests")


def test_the_demonstration_delivers_what_it_should_and_leaves_nothing_running() -> None:
    done = subprocess.run([*LOCAL, "run"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scheduled 7  delivered 5  cancelled 2  lost 0  early 0  delivered after a cancel 0" in done.stdout
    assert "refused with 400" in done.stdout
    assert not _processes_of("ministack")


def test_state_survives_a_restart() -> None:
    with up() as endpoints:
        job = httpx.post(f"{endpoints['api']}/queues/emails/jobs", json={"payload": 1, "delay": 3600}).json()
        path = f"/queues/emails/jobs/{job['id']}"
        assert wait_until(lambda: _state(endpoints, path) == "scheduled", seconds=20)
    with up() as endpoints:
        assert _state(endpoints, path) == "scheduled"
    assert not _processes_of("ministack")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_leave_nothing_running(ending: signal.Signals) -> None:
    process = subprocess.Popen([*LOCAL, "run"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("scheduled"):
            break
    os.kill(process.pid, ending)
    assert process.wait(20) == 130
    process.stdout.close()
    time.sleep(0.5)
    assert not _processes_of("ministack")


def _state(endpoints: dict[str, Any], path: str) -> str:
    return str(httpx.get(endpoints["api"] + path).json()["state"])


def _processes_of(module: str) -> list[str]:
    """Return the processes that run a module from this checkout's virtual environment and have this one's home."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if f"-m {module}" in line and sys.executable in line]
