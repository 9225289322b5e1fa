"""The local run, as a newcomer starts it and the tutorial says."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest

from local.emulator import CREDENTIALS, free_port
from local.template import ROOT
from tests.e2e.deployed import RetryingTransport, send_inbound
from tests.e2e.newcomer import Reader, blocks, local
from tests.waiting import HANG_SECONDS, wait_until


@contextmanager
def up(home: Path, *, ending: str | signal.Signals, port: int | None = None) -> Iterator[dict[str, Any]]:
    """Stay up while the context lasts; `down`, or a signal, must end it in order."""
    endpoints = home / "endpoints.json"
    process = local("up", home, port=port)
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
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("synthesized")


@pytest.fixture
def home(tmp_path: Path, synthesized: Path) -> Path:
    """A home of its own, in which what was synthesized once is found again."""
    (tmp_path / "synthesized").symlink_to(synthesized)
    return tmp_path


def test_tutorial_works_as_typed(home: Path) -> None:
    """README's commands as well."""
    tutorial, readme = (blocks((ROOT / page).read_text()) for page in ("docs/tutorial.md", "README.md"))
    [commands] = [block for block in readme if "make -s env" in block.text]
    with Reader(home) as newcomer:
        newcomer.follow(tutorial[:-1], folder="shop")
        newcomer.terminal("README").type(commands.text)
        newcomer.follow(tutorial[-1:], folder="shop")


def test_state_survives_a_restart(home: Path) -> None:
    port = free_port()
    with up(home, ending="down", port=port) as endpoints:
        assert _ports(endpoints) == [port, port + 1, port + 2]
        assert "unset AWS_PROFILE AWS_SESSION_TOKEN\n" in local("env", home).communicate()[0]
        before = _scheduled(endpoints)
    # A terminal that is closed.
    with up(home, ending=signal.SIGHUP) as endpoints:
        assert _ports(endpoints) == [port, port + 1, port + 2]
        assert _state(endpoints, before) == "scheduled"
        _ingested(endpoints)
    assert local("env", home).communicate()[0] == "it is not up: `make up` starts it\n"


def test_ctrl_c_in_synthesis_leaves_nothing(tmp_path: Path) -> None:
    process = local("run", tmp_path)
    # The CDK's two, at least.
    assert wait_until(lambda: len(_running(tmp_path)) >= 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    assert wait_until(lambda: not _running(tmp_path))


def test_run_shows_the_worker_at_work(home: Path) -> None:
    demonstration = local("run", home)
    output, _ = demonstration.communicate(timeout=HANG_SECONDS)
    assert demonstration.returncode == 0, output
    # A cancel that comes too late, on a slow machine, is none.
    summary = r"scheduled 8  succeeded [78]  cancelled [01]  lost 0  early 0  started after a cancel 0\n"
    assert re.search(summary, output), output
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for shown in (
        r"scheduled welcome bob due .* route: direct",
        r"scheduled welcome cid due .* route: table",
        r"moved welcome eve due .* by its key",
        r"run now digest",
        r".* retried queue=emails .* kind=receipt attempt=1 .* ConnectionError: the mail server does not answer",
        r".* failed queue=emails .* kind=welcome attempt=2 .*",
        r"ConnectionError: the mail server does not answer",  # of the stack trace
        r"1 of 1 dead letter of queue emails: 1 put back",
        r"to gil@example.com: Welcome!",
        r".* succeeded queue=emails .* kind=receipt attempt=3 .*",
        r".* succeeded queue=emails .* kind=digest attempt=1 .*",
    ):
        assert any(re.fullmatch(shown, line) for line in lines), (shown, output)


def _patient_http(api: str) -> httpx.Client:
    """Return a client of the API of a local run, which signs for its callers."""
    return httpx.Client(base_url=api, timeout=HANG_SECONDS, transport=RetryingTransport())


def _ports(endpoints: dict[str, Any]) -> list[int | None]:
    """Return the ports of the local AWS, the API and the console."""
    return [urlsplit(endpoints["aws"]).port, urlsplit(endpoints["api"]).port, endpoints["console_port"]]


def _scheduled(endpoints: dict[str, Any]) -> str:
    """Schedule a job far ahead, and return its id."""
    body = {"payload": 1, "delay": 3600}
    with _patient_http(endpoints["api"]) as http:
        answer = http.post("/queues/emails/jobs", json=body).json()
    assert answer["state"] == "scheduled"
    return str(answer["id"])


def _ingested(endpoints: dict[str, Any]) -> None:
    """Send a job to the inbound queue, as submission does while the table throttles; wait until it is in the table."""
    make: Any = boto3.client
    sqs = make("sqs", endpoint_url=endpoints["aws"], region_name=endpoints["region"], **CREDENTIALS)
    id = send_inbound(sqs, endpoints["inbound_url"], due=datetime.now(UTC) + timedelta(hours=1))
    assert wait_until(lambda: _state(endpoints, id) == "scheduled")


def _state(endpoints: dict[str, Any], id: str) -> str:
    with _patient_http(endpoints["api"]) as http:
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
