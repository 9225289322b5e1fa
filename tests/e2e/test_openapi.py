"""The API answers as docs/openapi.json says, through the deployed template; and the local run shows it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local.door import door
from local.emulator import Emulator
from local.endpoints import Endpoints
from local.template import ROOT
from tests.e2e.early import TRACE
from tests.e2e.fuzz.run import fuzz
from tests.e2e.inbox import Receive, wait_until

YEAR = 366 * 86_400


@pytest.fixture(scope="module")
def opened(emulator: Emulator, endpoints: Endpoints) -> Iterator[str]:
    with door(endpoints.api, verify=emulator.trust()) as url:
        yield url


@pytest.fixture(scope="module")
def ids(opened: str) -> list[str]:
    """Jobs that are scheduled."""
    asked = {"jobs": [{"payload": {"n": n}, "delay": YEAR + n} for n in range(20)]}
    ids = [job["id"] for job in httpx.post(f"{opened}/queues/emails/jobs", json=asked, timeout=30).json()["jobs"]]
    assert wait_until(lambda: all(_state(opened, id) == "scheduled" for id in ids[-3:]), seconds=20)
    return ids


def test_whatever_is_asked_is_answered_as_the_document_says(opened: str, ids: list[str], tmp_path: Path) -> None:
    done = fuzz(opened, ids=ids, folder=tmp_path, examples=os.environ.get("FUZZ_EXAMPLES"))
    _let_go(opened)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    # Not for want of anything to ask.
    operations = sum(map(len, json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"].values()))
    assert f"{operations} selected / {operations} total" in done.stdout
    assert all(f"✅  {phase}" in done.stdout for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"))


def test_the_door_shows_the_document_and_a_page_to_try_it_out(opened: str) -> None:
    document = httpx.get(f"{opened}/openapi.json")
    assert document.json()["openapi"] == "3.1.0"
    assert document.content == (ROOT / "docs" / "openapi.json").read_bytes()
    page = httpx.get(f"{opened}/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert 'url: "/openapi.json"' in page.text
    assert "SwaggerUIBundle" in httpx.get(f"{opened}/docs/swagger-ui.js").text
    assert ".swagger-ui" in httpx.get(f"{opened}/docs/swagger-ui.css").text


def test_the_page_fetches_nothing_from_elsewhere(opened: str) -> None:
    assert "//" not in httpx.get(f"{opened}/docs").text


def test_the_door_passes_an_idempotency_key_on(opened: str) -> None:
    def post() -> httpx.Response:
        headers = {"Idempotency-Key": "through the door"}
        return httpx.post(f"{opened}/queues/emails/jobs", json={"payload": 1, "delay": YEAR}, headers=headers)

    first, repeat = post(), post()
    assert (first.status_code, repeat.status_code) == (201, 200)
    assert repeat.json()["id"] == first.json()["id"]


def _let_go(api: str) -> None:
    """Leave the queue to other tests neither paused nor limited."""
    httpx.post(f"{api}/queues/emails/resume", timeout=30).raise_for_status()
    httpx.put(f"{api}/queues/emails/rate", json={"rate": None}, timeout=30).raise_for_status()


def test_the_door_passes_a_trace_on(opened: str, receive: Receive) -> None:
    job = httpx.post(f"{opened}/queues/archive/jobs", json={"payload": 1}, headers=TRACE).json()
    attributes = receive(job["id"])["MessageAttributes"]
    assert {name: attributes[name]["StringValue"] for name in TRACE} == TRACE


def _state(api: str, id: str) -> str:
    return str(httpx.get(f"{api}/queues/emails/jobs/{id}", timeout=30).json()["state"])
