"""What docs/cli.md types works, and a redrive over a real queue."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from dueline import Client
from dueline.config.names import Names
from local.emulator import Emulator
from local.endpoints import Endpoints
from local.signing_proxy import signing_proxy
from tests.e2e.environment import environment_of
from tests.e2e.inbox import Inbox
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]
NAMES = (ROOT / "docs" / "names.md").read_text()
BY_PYTHON, BY_SHELL, BY_HTTP = re.findall(r"```(?:python|sh)\n(.*?)```", NAMES, re.DOTALL)
(TOUR,) = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / "cli.md").read_text(), re.DOTALL)
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
(PUT_BACK,) = re.findall(r"^    (dueline redrive --parked .*--apply)$", OPERATIONS, re.MULTILINE)

Shell = Callable[..., str]


@pytest.fixture
def shell(emulator: Emulator, endpoints: Endpoints, commands: Path, tmp_path: Path) -> Shell:
    """Runs what is typed, with `dueline` on the PATH and the deployment in the environment; returns its stdout."""
    env = environment_of(emulator, "e2e") | {"PATH": f"{commands}:{os.environ['PATH']}"}

    def typed(script: str, *, code: int = 0) -> str:
        result = subprocess.run(
            ["/bin/bash", "-euc", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG_SECONDS
        )
        assert result.returncode == code, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result.stdout

    return typed


@pytest.fixture
def dead(emulator: Emulator, endpoints: Endpoints) -> Iterator[Callable[[str, dict[str, str]], None]]:
    """Puts a message into the dead-letter queue of reminders, which is emptied before and after."""
    sqs, url = emulator.client("sqs"), endpoints.dead_letter_queues["reminders"]
    sqs.purge_queue(QueueUrl=url)

    def put(body: str, values: dict[str, str]) -> None:
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)

    yield put
    sqs.purge_queue(QueueUrl=url)


def test_the_tour_goes_through(shell: Shell) -> None:
    # Each queue has a function of its own to start: all at once take longer on a busy machine than a call may.
    assert wait_until(lambda: "unknown" not in shell("dueline queues 2>&1 || true"))
    assert shell(TOUR)


def test_page_of_names_goes_through(shell: Shell, endpoints: Endpoints, emulator: Emulator, credentials: None) -> None:
    exec(BY_PYTHON, {"client": Client.connect("e2e"), "timedelta": timedelta})
    assert shell(BY_SHELL).count("cancelled") == 1
    with signing_proxy(endpoints.api, authority=emulator.authority) as api:
        cancelled = shell(f"API={api}\n{BY_HTTP.replace('curl ', 'curl -fsS ')}").splitlines()[-1]
    assert cancelled.endswith('"state":"cancelled"}')


def test_dead_letters_are_shown_and_redriven(
    shell: Shell, dead: Callable[..., None], inbox: Callable[[str], Inbox], http: httpx.Client
) -> None:
    id = http.post("/queues/reminders/jobs", json={"payload": 1, "delay": 3600}).json()["id"]
    values = {"dueline-id": id, "dueline-due": "2026-11-21T07:05:00.000Z", "dueline-error": "KeyError"}
    values |= {"dueline-reason": "no key", "dueline-attempts": "3"}
    for number in range(12):
        dead(str(number), values)
    dead("100", {**values, "dueline-error": "TypeError"})
    looked = json.loads(shell("dueline redrive reminders --json"))
    assert {each["error"]: each["count"] for each in looked["by_error"]} == {"KeyError": 12, "TypeError": 1}
    arrived = inbox("reminders")
    moved = json.loads(shell("dueline redrive reminders --error KeyError --apply --yes --json"))
    assert (moved["moved"], moved["failed"]) == (12, [])
    assert wait_until(lambda: {each.payload for each in arrived.of(id)} == {str(number) for number in range(12)})
    assert json.loads(shell("dueline redrive reminders --json"))["found"] == 1
    left = json.loads(shell("dueline dead reminders --payload --json"))
    assert (left["error"], left["attempts"], left["payload_text"]) == ("TypeError", 3, "100")
    assert json.loads(shell("dueline dead reminders --delete --yes --json"))["deleted"] == 1
    assert json.loads(shell("dueline redrive reminders --json"))["found"] == 0


def test_parked_jobs_are_put_back(shell: Shell, emulator: Emulator, endpoints: Endpoints, http: httpx.Client) -> None:
    sqs, far = emulator.client("sqs"), datetime.now(UTC) + timedelta(hours=1)
    queue, partition, _, _, uid = http.post("/queues/invoices/jobs", json={"payload": 1}).json()["id"].split(".")
    id = f"{queue}.{partition}.t.{int(far.timestamp() * 1000)}.{uid}"
    values = {"dueline-id": id, "dueline-expires": (far + timedelta(days=1)).isoformat(), "dueline-reason": "gone"}
    attributes: dict[str, Any] = {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
    parked = endpoints.dead_letter_queues["dispatch"]
    assert parked.endswith(Names("e2e").dispatch_dlq)
    sqs.purge_queue(QueueUrl=parked)
    sqs.send_message(QueueUrl=parked, MessageBody='{"to":"ann"}', MessageAttributes=attributes)
    assert "1 put back" in shell(f"{PUT_BACK} --yes")
    assert "Messages" not in sqs.receive_message(QueueUrl=parked)
    assert wait_until(lambda: http.get(f"/queues/invoices/jobs/{id}").json()["state"] == "scheduled")


def test_what_is_not_there_exits_3(shell: Shell) -> None:
    shell("dueline queues nothing", code=3)
    shell("dueline --name nowhere redrive --parked", code=3)
