"""What README, docs/http.md, docs/worker.md and docs/lambda-consumer.md show first works."""

import json
import re
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.emulator import ACCOUNT, REGION, Emulator
from local.endpoints import Endpoints
from local.signing_proxy import signing_proxy
from tests.e2e.conftest import Shell
from tests.e2e.inbox import dead_letter
from tests.e2e.working import working
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CLIENT, WORKER = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PLAIN = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "worker.md").read_text(), re.DOTALL)[-1]
IN_LAMBDA = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "lambda-consumer.md").read_text(), re.DOTALL)[0]
SIGNED, LOCAL = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "http.md").read_text(), re.DOTALL)


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on the PATH")


class Sent(Exception):
    """Ends the endless loop of a consumer."""


@pytest.fixture
def job(http: httpx.Client) -> dict[str, Any]:
    return http.post("/queues/invoices/jobs", json={"payload": {"to": "ann"}}).json()


@pytest.mark.usefixtures("credentials")
def test_readme_client_schedules_and_cancels(capsys: pytest.CaptureFixture[str]) -> None:
    exec(CLIENT.replace("connect()", 'connect("e2e")'), {})
    assert capsys.readouterr().out == "cancelled\n"


def test_readme_shows_ten_lines_of_python_first() -> None:
    lines = [line for line in f"{CLIENT}{WORKER}".splitlines() if line and "import" not in line]
    assert len(lines) <= 10
    assert README.index(WORKER) < README.index("## ")


@needs_curl
def test_first_job_by_curl_in_a_local_run(
    endpoints: Endpoints, emulator: Emulator, http: httpx.Client, shell: Shell
) -> None:
    # tests/e2e/test_local_run.py types the first line.
    first, request = LOCAL.split("\n", 1)
    assert first == 'eval "$(make -s env)"'
    with signing_proxy(endpoints.api, authority=emulator.authority) as api:
        job = json.loads(shell(request, DUELINE_URL=api))
    assert http.get(f"/queues/emails/jobs/{job['id']}").is_success


@needs_curl
def test_first_job_by_curl_with_a_signature(endpoints: Endpoints, emulator: Emulator, shell: Shell) -> None:
    signer = {
        "API": endpoints.api,
        "AWS_REGION": REGION,
        "AWS_SESSION_TOKEN": "",
        "CURL_CA_BUNDLE": str(emulator.authority),
    }
    job = json.loads(shell(SIGNED, **signer))
    assert (job["queue"], job["route"], job["state"]) == ("emails", "table", "scheduled")
    refused = SIGNED.replace("$AWS_ACCESS_KEY_ID", "nobody")
    assert "id" not in json.loads(shell(refused, **signer))


@pytest.mark.usefixtures("credentials")
def test_plain_consumer_receives_a_job(job: dict[str, Any]) -> None:
    def send(payload: Any, *, id: str) -> None:
        if id == job["id"]:
            raise Sent(payload)

    with pytest.raises(Sent) as sent:
        exec(PLAIN.replace("/dueline/dueline/queues/emails", "/dueline/e2e/queues/invoices"), {"send": send})
    assert sent.value.args == ({"to": "ann"},)


@pytest.mark.usefixtures("credentials")
def test_worker_processes_a_job(http: httpx.Client) -> None:
    *shown, run = WORKER.replace("Worker()", 'Worker("e2e")').replace('"emails"', '"billing"').splitlines()
    assert run.startswith("worker.run()")
    names: dict[str, Any] = {}
    exec("\n".join(shown), names)
    http.post("/queues/billing/jobs", json={"payload": {"to": "a reader"}})
    with redirect_stdout(StringIO()) as output, working(names["worker"]):
        assert wait_until(lambda: "{'to': 'a reader'} 1\n" in output.getvalue()), output.getvalue()


@pytest.mark.usefixtures("credentials")
def test_lambda_consumer_processes_a_job(
    job: dict[str, Any], emulator: Emulator, endpoints: Endpoints, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    exec(IN_LAMBDA, names)
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{endpoints.queues['invoices'].rpartition('/')[2]}"
    records = [record_of(job, arn), {**record_of(job, arn), "messageId": "2", "body": "{"}]
    assert names["handler"]({"Records": records}, None) == {"batchItemFailures": []}
    assert f"{job['id']} {{'to': 'ann'}} 1\n" in capsys.readouterr().out
    _, attributes = dead_letter(emulator, endpoints.dead_letter_queues["invoices"])
    assert attributes["dueline-reason"] == "its payload is no JSON"


def record_of(job: dict[str, Any], arn: str) -> dict[str, Any]:
    """Return a job as Lambda hands it to a function."""
    attributes = {"dueline-id": job["id"], "dueline-due": job["due"], "dueline-expires": "2030-01-01T00:00:00.000Z"}
    return {
        "messageId": "1",
        "receiptHandle": "1",
        "body": '{"to":"ann"}',
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1795255290123"},
        "messageAttributes": {name: {"dataType": "String", "stringValue": value} for name, value in attributes.items()},
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": REGION,
    }
