"""The API's function answers as docs/openapi.json says, deployed too; and the local run shows the document."""

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx
import pytest

from local.emulator import Emulator
from local.endpoints import Endpoints
from local.signing_proxy import signing_proxy
from local.template import ROOT
from tests.api_harness import CONTEXT, import_api
from tests.builders import a_queue
from tests.e2e.fuzz.run import SCHEDULE, fuzz
from tests.fake_api_server import ApiRequest, Reply, fake_api_server
from tests.waiting import HANG_SECONDS, wait_until

YEAR = 366 * 86_400


@pytest.fixture(scope="module")
def in_memory() -> Iterator[str]:
    """The API's function in this process, with tables and queues in memory, behind a server."""
    with pytest.MonkeyPatch.context() as patch, import_api(patch, a_queue()) as api, fake_api_server() as server:
        api.with_schedules()
        server.queues_reply = None
        server.respond = lambda request: _reply_of(api, request)
        yield server.url


def _reply_of(api: Any, request: ApiRequest) -> Reply:
    """Return the function's reply, invoked as the gateway does it."""
    url = urlsplit(request.path)
    http = {"method": request.method, "path": unquote(url.path), "sourceIp": "1.2.3.4", "userAgent": "curl"}
    event = {
        "version": "2.0",
        "rawPath": unquote(url.path),
        "headers": dict(request.headers),
        "queryStringParameters": dict(parse_qsl(url.query, keep_blank_values=True)),
        "requestContext": {"http": http, "stage": "$default", "authorizer": {"iam": {"userArn": "ann"}}},
        "isBase64Encoded": True,
        "body": b64encode(request.body).decode(),
    }
    answer = api.handler(event, CONTEXT)
    return Reply(status=answer["statusCode"], headers=answer["headers"], body=answer["body"].encode())


@pytest.fixture(scope="module")
def deployed_api(emulator: Emulator, endpoints: Endpoints) -> Iterator[str]:
    with signing_proxy(endpoints.api, authority=emulator.authority) as url:
        yield url


@pytest.fixture(scope="module", params=["in_memory", pytest.param("deployed_api", marks=pytest.mark.thorough)])
def opened(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


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


def _let_go(api: httpx.Client) -> None:
    """Leave the queue to other tests neither paused nor limited."""
    api.post("/queues/emails/resume").raise_for_status()
    api.put("/queues/emails/rate", json={"rate": None}).raise_for_status()
    for schedule in api.get("/queues/emails/schedules", params={"limit": 100}).json()["schedules"]:
        api.delete(f"/queues/emails/schedules/{schedule['schedule']}").raise_for_status()


def _state(api: httpx.Client, id: str) -> str:
    return str(api.get(f"/queues/emails/jobs/{id}").json()["state"])
