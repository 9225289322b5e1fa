"""The local run, as a newcomer starts it and the tutorial says."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest

from local.emulator import CREDENTIALS, free_port
from local.template import ROOT
from tests.e2e.chaos.bad_messages import carried, id_of
from tests.e2e.newcomer import blocks, local, reader
from tests.retrying_http import patient_http
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
    with reader(home) as newcomer:
        newcomer.follow(tutorial[:-1], folder="shop")
        newcomer.terminal("README").type(commands.text)
        newcomer.follow(tutorial[-1:], folder="shop")


def test_state_survives_a_restart(home: Path) -> None:
    port = free_port()
    with up(home, ending="down", port=port) as endpoints:
        assert _ports(endpoints) == [port, port + 1, port + 2]
        assert endpoints["docs"] == f"{endpoints['api']}/docs"
        assert "SwaggerUIBundle" in httpx.get(endpoints["docs"], timeout=HANG_SECONDS).text
        assert "welcome-ann: cancelled\n" in _typed_after_make_env(home)
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
    assert re.search(
        r"scheduled 8  succeeded [78]  cancelled [01]  retries [3-9]  dead letters 1"
        r"  lost 0  early 0  started after a cancel 0  unexpected 0\n",
        output,
    ), output
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for shown in (
        r"scheduled welcome bob due .* route: direct",
        r"scheduled welcome cid due .* route: table",
        r"moved welcome eve due .* by its key",
        r"run now digest due .*",
        r"failed welcome gil .*: into the dead-letter queue",
        r"ConnectionError: the mail server does not answer",  # of the stack trace
        r"1 of 1 dead letter of queue emails: 1 put back",
        r"succeeded welcome gil at attempt 1, once it was put back",
        r"succeeded receipt fay at attempt 3",
        r"succeeded digest .*",
    ):
        assert any(re.fullmatch(shown, line) for line in lines), (shown, output)


def _ports(endpoints: dict[str, Any]) -> list[int | None]:
    """Return the ports of the local AWS, the API and the console."""
    return [urlsplit(endpoints["aws"]).port, urlsplit(endpoints["api"]).port, endpoints["console_port"]]


def _typed_after_make_env(home: Path) -> str:
    """Type what `up` says: the command line, over HTTP and straight on SQS, which dead letters need, and Python."""
    script = """
        eval "$(make -s -o .venv/ready env)"
        dueline schedule emails '{"to": "ann"}' --delay 1h
        dueline dead emails | grep '0 of 0'
        python -c '
import boto3, dueline
assert boto3.client("sqs").list_queues(QueueNamePrefix="dueline_emails")["QueueUrls"]
client = dueline.Client.connect()
client.schedule("emails", {"to": "ann"}, delay=3600, key="welcome-ann")
state = client.cancel(queue="emails", key="welcome-ann")
print("welcome-ann:", state)'
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env |= {"DUELINE_HOME": str(home), "AWS_PROFILE": "of no file"}
    command = ["/bin/bash", "-ec", script]
    result = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert result.returncode == 0, result
    return result.stdout


def _scheduled(endpoints: dict[str, Any]) -> str:
    """Schedule a job far ahead, and return its id."""
    body = {"payload": 1, "delay": 3600}
    with patient_http(endpoints["api"]) as http:
        answer = http.post("/queues/emails/jobs", json=body).json()
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
