"""The local run, as a newcomer starts it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from local.emulator import CREDENTIALS
from local.template import ROOT
from tests.e2e.chaos.bad_messages import carried, id_of
from tests.e2e.newcomer import local
from tests.retrying_http import patient_http
from tests.waiting import HANG_SECONDS, wait_until


@contextmanager
def up(home: Path, *, ending: str | signal.Signals) -> Iterator[dict[str, Any]]:
    """Stay up while the context lasts; `down`, or a signal, must end it in order."""
    endpoints = home / "endpoints.json"
    process = local("up", home)
    try:
        assert wait_until(lambda: endpoints.exists() or process.poll() is not None)
        yield json.loads(endpoints.read_text())
        if isinstance(ending, str):
            assert local(ending, home).communicate()[0].splitlines()[-1] == ending
        else:
            process.send_signal(ending)
        assert process.wait(HANG_SECONDS) == 0
        assert not endpoints.exists()
        assert wait_until(lambda: not _running(home))
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home, in which what was synthesized once is found again."""
    return tmp_path_factory.mktemp("home")


def test_state_survives_a_restart_and_ingest_goes_on(home: Path) -> None:
    with up(home, ending="down") as endpoints:
        assert endpoints["docs"] == f"{endpoints['api']}/docs"
        assert "SwaggerUIBundle" in httpx.get(endpoints["docs"], timeout=HANG_SECONDS).text
        assert _speaks_to_it(home)
        before = _scheduled(endpoints)
    # A terminal that is closed.
    with up(home, ending=signal.SIGHUP) as endpoints:
        assert _state(endpoints, before) == "scheduled"
        _ingested(endpoints)
    assert local("env", home).communicate()[0] == "it is not up: `make up` starts it\n"


def test_ctrl_c_while_it_synthesizes_leaves_nothing_running(tmp_path: Path) -> None:
    process = local("run", tmp_path)
    # The CDK's two, at least.
    assert wait_until(lambda: len(_running(tmp_path)) >= 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    assert wait_until(lambda: not _running(tmp_path))


def test_the_demonstration_delivers_what_it_should(home: Path) -> None:
    demonstration = local("run", home)
    told, _ = demonstration.communicate(timeout=HANG_SECONDS)
    assert demonstration.returncode == 0, told
    # A cancel that comes too late, on a slow machine, is none.
    assert re.search(r"scheduled 7  delivered [567]  cancelled [12]  lost 0  early 0  delivered after a cancel 0", told)
    assert "refused with 400" in told


def _speaks_to_it(home: Path) -> bool:
    """Type what `up` says about the command line, over HTTP and straight on SQS, which a redrive needs."""
    typed = f'eval "$({sys.executable} -m local env)"; {sys.executable} -m dueline'
    script = f"{typed} schedule emails 1 --delay 1h && {typed} redrive emails --json"
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env |= {"DUELINE_HOME": str(home)}
    command = ["/bin/sh", "-ec", script]
    told = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=HANG_SECONDS)
    return told.returncode == 0 and '"found": 0' in told.stdout


def _scheduled(endpoints: dict[str, Any]) -> str:
    """Schedule a job far ahead, and return its id."""
    asked = {"payload": 1, "delay": 3600}
    with patient_http(endpoints["api"]) as http:
        answer = http.post("/queues/emails/jobs", json=asked).json()
    assert answer["state"] == "scheduled"
    return str(answer["id"])


def _ingested(endpoints: dict[str, Any]) -> None:
    """Send a job to the inbound queue, as submission does while the table throttles; wait until it is in the table."""
    id = id_of()
    make: Any = boto3.client
    sqs = make("sqs", endpoint_url=endpoints["aws"], region_name=endpoints["region"], **CREDENTIALS)
    sqs.send_message(QueueUrl=endpoints["inbound_url"], MessageBody="1", MessageAttributes=carried(id))
    assert wait_until(lambda: _state(endpoints, id) == "scheduled")


def _state(endpoints: dict[str, Any], id: str) -> str:
    with patient_http(endpoints["api"]) as http:
        return str(http.get(f"/queues/emails/jobs/{id}").json()["state"])


def _running(home: Path) -> list[str]:
    """Return the processes that were started with this home and still run."""
    marked = f"DUELINE_HOME={home}".encode()
    return [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if marked in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
