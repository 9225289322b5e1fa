"""The deployed API answers as docs/openapi.json says."""

import json
import os
import subprocess
import sys

import httpx
import pytest

from local.signing_proxy import signing_proxy
from local.template import ROOT
from tests.waiting import HANG_SECONDS, wait_until

FUZZ, DOCUMENT = ROOT / "tests" / "e2e" / "fuzz", ROOT / "docs" / "openapi.json"
YEAR = 366 * 86_400
UUID = "-".join(f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12))
SOON = r"^20(2[7-9]|3[0-5])-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T[01][0-9]:[0-5][0-9]:[0-5][0-9](Z|\+0[0-9]:30)$"
SCHEDULE = "fuzzed"
MANY = 20


@pytest.fixture(scope="module")
def api(emulator, endpoints):
    with (
        signing_proxy(endpoints.api, authority=emulator.authority) as url,
        httpx.Client(base_url=url, timeout=HANG_SECONDS) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ids(api):
    """Jobs that are scheduled."""
    bodies = {"jobs": [{"payload": {"n": n}, "delay": YEAR + n} for n in range(20)]}
    ids = [job["id"] for job in api.post("/queues/emails/jobs", json=bodies).json()["jobs"]]
    # A schedule that never runs, for there is none at all else until one is made up.
    api.put(f"/queues/emails/schedules/{SCHEDULE}", json={"cron": "0 0 29 2 *"}).raise_for_status()
    paths = [f"/queues/emails/jobs/{id}" for id in ids[-3:]]
    assert wait_until(lambda: all(api.get(path).json()["state"] == "scheduled" for path in paths))
    return ids


def narrowed(document, *, ids):
    """Return the document with a queue and ids that there may be, times to come, few jobs a call, and all closed.

    Without that nearly all would be refused: a queue, an id and a date in the next ten years are seldom guessed. Calls
    of 500 take seconds, and other tests make them.
    """
    schemas, parameters = (document["components"][each] for each in ("schemas", "parameters"))
    parameters["queue"]["schema"] = {"enum": ["emails"]}
    parameters["schedule"]["schema"] = {"enum": [SCHEDULE]}
    another = {"type": "string", "pattern": rf"^emails\.0\.[dt]\.1[89][0-9]{{11}}\.{UUID}$"}
    parameters["id"] |= {"schema": {"anyOf": [{"enum": list(ids)}, another]}, "example": ids[0]}
    for body in ("JobBody", "TimeBody"):
        schemas[body]["properties"]["at"]["anyOf"].insert(0, {"type": "string", "pattern": SOON})
    # No upload that is made up was ever sent.
    del schemas["JobBody"]["properties"]["upload"]
    for body, many in (("JobsBody", "jobs"), ("CancellationsBody", "ids"), ("CancellationsBody", "keys")):
        schemas[body]["properties"][many]["maxItems"] = MANY
    for schema in schemas.values():
        # Published open, so that a field may be added; closed here, so that none is returned that is not written.
        schema.setdefault("additionalProperties", False)
    return document


@pytest.mark.thorough
def test_api_answers_as_its_document_says(api, ids, tmp_path):
    """For all that the document allows, and for what it forbids; FUZZ_EXAMPLES is how many requests an operation."""
    document = json.loads(DOCUMENT.read_text())
    # Not for want of anything to send.
    operations = sum(map(len, document["paths"].values()))
    (tmp_path / "openapi.json").write_text(json.dumps(narrowed(document, ids=ids)))
    command = [sys.executable, "-m", "schemathesis.cli", "--no-color", "--config-file", str(FUZZ / "schemathesis.toml")]
    command += ["run", "openapi.json", "--url", str(api.base_url)]
    command += ["--max-examples", os.environ.get("FUZZ_EXAMPLES", "2")]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.e2e.fuzz.hooks"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    # Other tests need the queue, neither paused nor limited.
    api.post("/queues/emails/resume").raise_for_status()
    api.put("/queues/emails/rate", json={"rate": None}).raise_for_status()
    for schedule in api.get("/queues/emails/schedules", params={"limit": 100}).json()["schedules"]:
        api.delete(f"/queues/emails/schedules/{schedule['schedule']}").raise_for_status()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"{operations} selected / {operations} total" in done.stdout
    assert all(f"✅  {phase}" in done.stdout for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"))
