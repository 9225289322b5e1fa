"""What docs/client.md shows works, with no more rights than it names."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from dueline import Client, Forbidden, State
from dueline.config.names import Names
from local.emulator import REGION, Emulator
from tests.e2e.emulated_iam import key_of
from tests.waiting import wait_until

DOCS = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
pytestmark = pytest.mark.usefixtures("credentials")
TOUR, LINGERING, OF_ASYNCIO = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)


def test_the_tour_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(TOUR.replace("connect()", 'connect("e2e")'), names)
    assert len(names["results"]) == 100
    assert names["failed"] == []
    assert "QueueSettings(name='emails'" in capsys.readouterr().out
    exec(LINGERING.replace("connect(", 'connect("e2e", '), names)
    assert names["client"].cancel(names["results"][0].id) is State.CANCELLED
    names["client"].cancel_many(job.id for job in names["results"])


def test_a_job_is_scheduled_from_asyncio() -> None:
    names: dict[str, Any] = {}
    exec(OF_ASYNCIO.replace("connect()", 'connect("e2e")'), names)
    job = asyncio.run(names["remind"]("ann"))
    assert asyncio.run(names["client"].cancel(job.id)) is State.CANCELLED


@pytest.fixture
def direct(emulator: Emulator) -> Client:
    """A direct client that has the policies of direct producers of two queues, and nothing else."""
    key = key_of(emulator, "direct", *(Names("e2e").policy(queue, "direct") for queue in ("emails", "invoices")))
    session = boto3.Session(*key, region_name=REGION)
    return Client.connect("e2e", session=session, direct=True)


def is_past(fence: datetime, emulator: Emulator, id: str) -> bool:
    """Return whether the fence of a job's partition is past an instant."""
    queue, partition, *_ = id.split(".")
    key = {"pk": {"S": f"{queue}#{partition}"}, "sk": {"S": "!state"}}
    state = emulator.client("dynamodb").get_item(TableName=Names("e2e").state, Key=key, ConsistentRead=True)
    return state.get("Item", {}).get("fence", {"S": ""})["S"] > fence.isoformat()


def test_direct_client_reaches_its_own_queues_only(direct: Client, emulator: Emulator) -> None:
    at = datetime.now(UTC) + timedelta(days=20)
    job = direct.schedule("invoices", 1, at=at, key="direct")
    assert direct.schedule("invoices", 1, at=at, key="direct").id == job.id
    assert direct.cancel(direct.schedule("emails", 1).id) is State.CANCEL_REQUESTED
    assert wait_until(lambda: direct.get(job.id).state is State.SCHEDULED)
    assert job.id in [each.id for each in direct.jobs("invoices", start=job.due, end=job.due + timedelta(seconds=1))]
    moved = direct.reschedule(job.id, at=at + timedelta(days=1))
    assert (direct.get(job.id).id, moved.state) == (moved.id, State.SCHEDULED)
    soon = datetime.now(UTC) + timedelta(seconds=21)
    assert wait_until(lambda: is_past(soon, emulator, moved.id))
    for call in (lambda: direct.schedule("archive", 1), lambda: direct.reschedule(moved.id, at=soon), direct.queues):
        with pytest.raises(Forbidden):
            call()
    assert direct.cancel_many([moved.id]) == [State.CANCELLED]
    large = direct.schedule("invoices", "x" * 300_000, at=at)
    assert direct.cancel(large.id) is State.CANCELLED
    assert direct.queue("emails").dead == 0
