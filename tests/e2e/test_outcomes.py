"""What workers find of their queue, and what they note, which the deployed API tells.

They note it as the emulator's administrator: it does not know by which partition keys their policy grants.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import httpx
import pytest

from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.settings import SettingsStore
from dueline.config.names import Names
from dueline.core.clock import SystemClock
from dueline.core.job import JobId, State
from dueline.core.status import Outcome, note_outcome
from local.emulator import ACCOUNT, REGION, Emulator
from local.endpoints import Endpoints
from tests.acceptance.early import schedule

NAMES = Names("e2e")
LONGEST = timedelta(seconds=10)
BEGAN = datetime(2026, 11, 21, 7, 5, tzinfo=UTC)
A_DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def worker(emulator: Emulator, endpoints: Endpoints) -> boto3.Session:
    """The session of a worker that has the managed policy for consumers of a queue that tracks, and nothing else."""
    iam = emulator.client("iam")
    iam.create_user(UserName="worker")
    policy = f"arn:aws:iam::{ACCOUNT}:policy/{NAMES.policy('ranked', 'consumer')}"
    iam.attach_user_policy(UserName="worker", PolicyArn=policy)
    key = iam.create_access_key(UserName="worker")["AccessKey"]
    return boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)


def test_what_a_worker_notes_is_told(http: httpx.Client, emulator: Emulator) -> None:
    table = DynamoTable(emulator.client("dynamodb"), NAMES.table, state=NAMES.state)
    # Due long after these tests: what arrives in the queue is counted by others.
    id = JobId.parse(schedule(http, "ranked", payload=1, delay=3600)["id"])

    def told() -> dict[str, Any]:
        answer: dict[str, Any] = http.get(f"/queues/ranked/jobs/{id}").json()
        return answer

    assert told()["state"] in ("unrecorded", "scheduled")
    assert "attempts" not in told()
    running = Outcome(state=State.RUNNING, attempts=1, started=BEGAN)
    assert note_outcome(id, running, expires=id.due + A_DAY, table=table)
    assert (told()["state"], told()["attempts"], told()["started"]) == ("running", 1, "2026-11-21T07:05:00.000Z")
    failed = Outcome(state=State.FAILED, attempts=1, started=BEGAN, ended=BEGAN + A_DAY, error="TimeoutError")
    assert note_outcome(id, failed, expires=id.due + A_DAY, table=table)
    assert not note_outcome(id, running, expires=id.due + A_DAY, table=table)
    assert (told()["state"], told()["error"], told()["ended"]) == ("failed", "TimeoutError", "2026-11-22T07:05:00.000Z")
    assert http.delete(f"/queues/ranked/jobs/{id}").status_code == 200
    assert (told()["state"], "attempts" in told()) == ("cancelled", False)


def test_a_worker_finds_what_it_needs_of_its_queue(
    worker: boto3.Session, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(emulator.authority))
    work = SettingsStore(clients.ssm(worker, longest=LONGEST), NAMES, clock=SystemClock()).work("ranked")
    assert (work.queue.track, len(work.urls), work.max_receives) == (True, 2, 15)
    assert work.dead_letters.endswith(f"/{NAMES.queue_dlq('ranked')}")
