"""What docs/client.md shows works, with no more rights than it names."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from dueline import Client, State
from local.emulator import ACCOUNT, CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints
from tests.e2e.emulated_iam import as_the_emulator_takes_it
from tests.e2e.inbox import wait_until

DOCS = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
TOUR, OF_ASYNCIO = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
(TRUSTED,) = re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, emulator: Emulator, endpoints: Endpoints) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it would keep the credentials of earlier tests
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(emulator.authority))
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name.upper(), value)


def test_the_tour_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(TOUR.replace("connect()", 'connect("e2e")'), names)
    assert len(names["results"]) == 100
    assert names["failed"] == []
    assert "QueueSettings(name='emails'" in capsys.readouterr().out
    names["client"].cancel_many(job.id for job in names["results"])


def test_a_job_is_scheduled_from_asyncio() -> None:
    names: dict[str, Any] = {}
    exec(OF_ASYNCIO.replace("connect()", 'connect("e2e")'), names)
    job = asyncio.run(names["remind"]("ann"))
    assert asyncio.run(names["client"].cancel(job.id)) is State.CANCELLED


@pytest.fixture
def trusted(emulator: Emulator) -> Client:
    """A direct client that has the policy that is shown, and nothing else."""
    iam, policy = emulator.client("iam"), json.loads(TRUSTED.replace("ACCOUNT", ACCOUNT).replace("dueline", "e2e"))
    policy = json.loads(json.dumps(policy).replace("/e2e/e2e/", "/dueline/e2e/"))
    iam.create_user(UserName="trusted")
    document = json.dumps(as_the_emulator_takes_it(policy))
    iam.put_user_policy(UserName="trusted", PolicyName="direct", PolicyDocument=document)
    key = iam.create_access_key(UserName="trusted")["AccessKey"]
    session = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)
    return Client.connect("e2e", session=session, direct=True)


def test_the_rights_that_are_shown_are_what_a_direct_client_needs(trusted: Client) -> None:
    at = datetime.now(UTC) + timedelta(days=20)
    job = trusted.schedule("invoices", 1, at=at, key="trusted")
    assert trusted.cancel(trusted.schedule("emails", 1).id) is State.CANCEL_REQUESTED
    assert wait_until(lambda: trusted.get(job.id).state is State.SCHEDULED)
    moved = trusted.reschedule(job.id, at=at + timedelta(days=1))
    assert [each.id for each in trusted.jobs("invoices", start=moved.due, end=moved.due + timedelta(seconds=1))] == [
        moved.id
    ]
    assert trusted.cancel_many([moved.id]) == [State.CANCELLED]
    large = trusted.schedule("invoices", "x" * 300_000, at=at)
    assert trusted.cancel(large.id) is State.CANCELLED
    assert trusted.queues()
    assert trusted.queue("emails").dead == 0
