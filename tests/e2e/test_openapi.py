"""The deployed API answers as docs/openapi.json says; and the local run shows the document."""

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
def api(emulator: Emulator, endpoints: Endpoints) -> Iterator[httpx.Client]:
    with (
        signing_proxy(endpoints.api, authority=emulator.authority) as url,
        httpx.Client(base_url=url, timeout=HANG_SECONDS) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ids(api: httpx.Client) -> list[str]:
    """Jobs that are scheduled."""
    bodies = {"jobs": [{"payload": {"n": n}, "delay": YEAR + n} for n in range(20)]}
    ids = [job["id"] for job in api.post("/queues/emails/jobs", json=bodies).json()["jobs"]]
    # A schedule that never runs, for there is none at all else until one is made up.
    api.put(f"/queues/emails/schedules/{SCHEDULE}", json={"cron": "0 0 29 2 *"}).raise_for_status()
    paths = [f"/queues/emails/jobs/{id}" for id in ids[-3:]]
    assert wait_until(lambda: all(api.get(path).json()["state"] == "scheduled" for path in paths))
    return ids


@pytest.mark.thorough
def test_api_answers_as_its_document_says(api: httpx.Client, ids: list[str], tmp_path: Path) -> None:
    done = fuzz(str(api.base_url), ids=ids, folder=tmp_path, examples=os.environ.get("FUZZ_EXAMPLES"))
    # Other tests need the queue, neither paused nor limited.
    api.post("/queues/emails/resume").raise_for_status()
    api.put("/queues/emails/rate", json={"rate": None}).raise_for_status()
    for schedule in api.get("/queues/emails/schedules", params={"limit": 100}).json()["schedules"]:
        api.delete(f"/queues/emails/schedules/{schedule['schedule']}").raise_for_status()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    # Not for want of anything to send.
    operations = sum(map(len, json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"].values()))
    assert f"{operations} selected / {operations} total" in done.stdout
    assert all(f"✅  {phase}" in done.stdout for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"))


def test_local_api_serves_its_document() -> None:
    with signing_proxy("http://127.0.0.1:9") as url, httpx.Client(base_url=url) as local_api:
        document, page = local_api.get("/openapi.json"), local_api.get("/docs")
        assert document.content == (ROOT / "docs" / "openapi.json").read_bytes()
        assert page.headers["content-type"].startswith("text/html")
        assert 'url: "/openapi.json"' in page.text
        # It fetches nothing else.
        assert "//" not in page.text
        assert "SwaggerUIBundle" in local_api.get("/docs/swagger-ui.js").text
        assert ".swagger-ui" in local_api.get("/docs/swagger-ui.css").text
