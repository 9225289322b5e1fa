"""What README and pages of docs/ show works: by Python, by curl, from Node, and by the command `dueline`."""

import asyncio
import json
import re
import shutil
from contextlib import redirect_stdout
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from dueline import Client, State
from dueline.config.names import Names
from dueline.testing import sqs_event
from local.emulator import ACCOUNT, REGION
from local.signing_proxy import signing_proxy
from local.template import ROOT
from tests.e2e.deployed import working
from tests.e2e.emulated_iam import key_of
from tests.e2e.newcomer import code_of
from tests.waiting import wait_until

CLIENT, WORKER = code_of("README.md", "python")
TOUR, LINGERING, OF_ASYNCIO = code_of("docs/client.md", "python")
PLAIN = code_of("docs/worker.md", "python")[-1]
IN_LAMBDA = code_of("docs/lambda-consumer.md", "python")[0]
SIGNED, LOCAL = code_of("docs/http.md", "sh")
[NODE] = code_of("docs/invoke.md", "js")
[BY_PYTHON], [BY_SHELL, BY_HTTP] = (code_of("docs/names.md", language) for language in ("python", "sh"))
[OF_COMMANDS] = code_of("docs/cli.md", "bash")
PACKAGES = Path(__file__).parent / "node_modules"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on the PATH")
pytestmark = pytest.mark.usefixtures("credentials")


class Sent(Exception):
    """Ends the endless loop of a consumer."""


def run(code, **names):
    """Run what a page shows in the deployment of the tests, after what gave it some names; return all."""
    exec(re.sub(r"(connect|Worker)\((\)|(?=\w))", lambda of: f'{of[1]}("e2e"{of[2] or ", "}', code), names)
    return names


def test_readme_client_schedules_and_cancels(capsys):
    run(CLIENT)
    assert capsys.readouterr().out == "cancelled\n"


def test_readme_shows_ten_lines_of_python_first():
    lines = [line for line in f"{CLIENT}{WORKER}".splitlines() if line and "import" not in line]
    assert len(lines) <= 10
    readme = (ROOT / "README.md").read_text()
    assert readme.index(WORKER) < readme.index("## ")


def test_clients_tour_goes_through(capsys):
    names = run(TOUR)
    assert (len(names["results"]), names["failed"]) == (100, [])
    assert "QueueSettings(name='emails'" in capsys.readouterr().out
    client = run(LINGERING, **names)["client"]
    assert client.cancel(names["results"][0].id) is State.CANCELLED
    client.cancel_many(job.id for job in names["results"])


def test_job_is_scheduled_from_asyncio():
    names = run(OF_ASYNCIO)
    job = asyncio.run(names["remind"]("ann"))
    assert asyncio.run(names["client"].cancel(job.id)) is State.CANCELLED


@needs_curl
def test_first_job_by_curl_in_a_local_run(endpoints, emulator, http, shell):
    # tests/e2e/test_local_run.py types the first line.
    first, request = LOCAL.split("\n", 1)
    assert first == 'eval "$(make -s env)"'
    with signing_proxy(endpoints.api, authority=emulator.authority) as api:
        job = json.loads(shell(request, DUELINE_URL=api))
    assert http.get(f"/queues/emails/jobs/{job['id']}").is_success


@needs_curl
def test_first_job_by_curl_with_a_signature(endpoints, emulator, shell):
    signer = {"API": endpoints.api, "AWS_REGION": REGION, "AWS_SESSION_TOKEN": ""}
    signer |= {"CURL_CA_BUNDLE": str(emulator.authority)}
    job = json.loads(shell(SIGNED, **signer))
    assert (job["queue"], job["route"], job["state"]) == ("emails", "table", "scheduled")
    refused = SIGNED.replace("$AWS_ACCESS_KEY_ID", "nobody")
    assert "id" not in json.loads(shell(refused, **signer))


@pytest.mark.skipif(not (PACKAGES / "ready").exists(), reason="npm installed no SDK: make tests/e2e/node_modules/ready")
def test_node_schedules_by_the_alias(emulator, endpoints, typed, tmp_path):
    """It needs a queue's producer policy and nothing else."""
    id, secret = key_of(emulator, "node", Names(endpoints.name).policy("emails", "producer"))
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    example = tmp_path / "example.mjs"
    example.write_text(NODE.replace("dueline-api", f"{endpoints.name}-api"))
    key = {"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret}
    done = typed("node", str(example), AWS_REGION=REGION, NODE_EXTRA_CA_CERTS=str(emulator.authority), **key)
    assert "statusCode: 201" in done.stdout, done.stderr


def test_plain_consumer_receives_a_job(http):
    job = http.post("/queues/invoices/jobs", json={"payload": {"to": "ann"}}).json()

    def send(payload, *, id):
        if id == job["id"]:
            raise Sent(payload)

    with pytest.raises(Sent) as sent:
        exec(PLAIN.replace("/dueline/dueline/queues/emails", "/dueline/e2e/queues/invoices"), {"send": send})
    assert sent.value.args == ({"to": "ann"},)


def test_worker_processes_a_job(http):
    shown, _, _ = WORKER.replace('"emails"', '"billing"').partition("worker.run()")
    http.post("/queues/billing/jobs", json={"payload": {"to": "a reader"}})
    with redirect_stdout(StringIO()) as output, working(run(shown)["worker"]):
        assert wait_until(lambda: "{'to': 'a reader'} 1\n" in output.getvalue()), output.getvalue()


def test_lambda_consumer_processes_a_job(endpoints, capsys):
    event = json.dumps(sqs_event([{"to": "ann"}], queue="invoices"))
    event = re.sub(r"\d{12}:dueline_", f"{ACCOUNT}:{endpoints.name}_", event)
    assert run(IN_LAMBDA)["handler"](json.loads(event), None) == {"batchItemFailures": []}
    assert " {'to': 'ann'} 1\n" in capsys.readouterr().out


def test_tour_of_the_commands_goes_through(shell):
    # Each queue has a function of its own to start: all at once take longer on a busy machine than a call may.
    assert wait_until(lambda: "unknown" not in shell("dueline queues 2>&1 || true"))
    assert shell(OF_COMMANDS)


def test_page_of_names_goes_through(shell, endpoints, emulator):
    exec(BY_PYTHON, {"client": Client.connect("e2e"), "timedelta": timedelta})
    assert shell(BY_SHELL).count("cancelled") == 1
    with signing_proxy(endpoints.api, authority=emulator.authority) as api:
        cancelled = shell(f"DUELINE_URL={api}\n{BY_HTTP.replace('curl ', 'curl -fsS ')}").splitlines()[-1]
    assert cancelled.endswith('"state":"cancelled"}')
