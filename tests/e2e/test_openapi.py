"""The API answers as docs/openapi.json says, through the deployed template; and the local run shows it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local.emulator import Emulator
from local.endpoints import Endpoints
from local.signing_proxy import signing_proxy
from local.template import ROOT
from tests.e2e.fuzz.run import SCHEDULE, fuzz
from tests.waiting import HANG_SECONDS, wait_until

YEAR = 366 * 86_400


@pytest.fixture(scope="module")
def opened(emulator: Emulator, endpoints: Endpoints) -> Iterator[str]:
    with signing_proxy(endpoints.api, authority=emulator.authority) as url:
        yield url


@pytest.fixture(scope="module")
def api(opened: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=opened, timeout=HANG_SECONDS) as client:
        yield client


@pytest.fixture(scope="module")
def ids(api: httpx.Client) -> list[str]:
    """Jobs that are scheduled."""
    bodies = {"jobs": [{"payload": {"n": n}, "delay": YEAR + n} for n in range(20)]}
    ids = [job["id"] for job in api.post("/queues/emails/jobs", json=bodies).json()["jobs"]]
    # A schedule that never runs, for there is none at all else until one is made up.
    api.put(f"/queues/emails/schedules/{SCHEDULE}", json={"cron": "0 0 29 2 *"}).raise_for_status()
    assert wait_until(lambda: all(_state(api, id) == "scheduled" for id in ids[-3:]))
    return ids


def test_api_answers_as_its_document_says(opened: str, api: httpx.Client, ids: list[str], tmp_path: Path) -> None:
    done = fuzz(opened, ids=ids, folder=tmp_path, examples=os.environ.get("FUZZ_EXAMPLES"))
    _let_go(api)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    # Not for want of anything to send.
    operations = sum(map(len, json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"].values()))
    assert f"{operations} selected / {operations} total" in done.stdout
    assert all(f"✅  {phase}" in done.stdout for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"))


def test_local_api_serves_its_document(api: httpx.Client) -> None:
    document = api.get("/openapi.json")
    assert document.json()["openapi"] == "3.1.0"
    assert document.content == (ROOT / "docs" / "openapi.json").read_bytes()
    page = api.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert 'url: "/openapi.json"' in page.text
    assert "SwaggerUIBundle" in api.get("/docs/swagger-ui.js").text
    assert ".swagger-ui" in api.get("/docs/swagger-ui.css").text


def test_docs_page_fetches_nothing_else(api: httpx.Client) -> None:
    assert "//" not in api.get("/docs").text


def _let_go(api: httpx.Client) -> None:
    """Leave the queue to other tests neither paused nor limited."""
    api.post("/queues/emails/resume").raise_for_status()
    api.put("/queues/emails/rate", json={"rate": None}).raise_for_status()
    for schedule in api.get("/queues/emails/schedules", params={"limit": 100}).json()["schedules"]:
        api.delete(f"/queues/emails/schedules/{schedule['schedule']}").raise_for_status()


def _state(api: httpx.Client, id: str) -> str:
    return str(api.get(f"/queues/emails/jobs/{id}").json()["state"])
