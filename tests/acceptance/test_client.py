"""The Python client: by the function of the API, over HTTP and direct."""

from datetime import UTC, datetime, timedelta

import pytest

from dueline import (
    AlreadyFinished,
    Client,
    Forbidden,
    Rate,
    Route,
    ScheduledJob,
    State,
)
from tests.acceptance.conftest import each_way
from tests.waiting import PATIENT, wait_until

DAY = timedelta(days=1)


@each_way
def test_job_is_scheduled_looked_up_and_cancelled(client, aws, names):
    at = datetime.now(UTC) + DAY
    job = client.schedule("plain", {"to": "ann"}, at=at)
    table = aws("dynamodb").scan(TableName=names.table)["Items"]
    # The client made its id: no key was needed.
    assert not [row for row in table if row["sk"]["S"].startswith(("!call", "!name")) and row["id"]["S"] == job.id]
    assert timedelta() <= job.due - at < timedelta(milliseconds=1)
    assert (job.queue, job.route, job.state) == ("plain", Route.TABLE, State.SCHEDULED)
    assert wait_until(lambda: client.get(job.id).state is State.SCHEDULED)
    assert client.cancel(job.id) is State.CANCELLED
    assert client.get(job.id).state is State.CANCELLED


@each_way
def test_job_arrives_with_its_payload(client, inbox):
    job = client.schedule("flood", {"é": [1, None]}, delay=1)
    assert (job.route, job.state) == (Route.DIRECT, State.DISPATCHED)
    assert inbox("flood").wait_for(job.id).body == r'{"\u00e9":[1,null]}'
    assert client.cancel(job.id) is State.CANCEL_REQUESTED


@each_way
def test_job_moves_and_is_listed_until_cancelled(client):
    job = client.schedule("flood", {"to": "ann"}, delay=3 * DAY, key=f"move {id(client)}")
    assert wait_until(lambda: client.get(job.id).state is State.SCHEDULED)
    moved = client.reschedule(job.id, at=job.due - DAY)
    assert moved.due == job.due - DAY
    assert client.reschedule(job.id, at=job.due - DAY) == moved
    job_now = client.get(job.id)
    assert (job_now.id, job_now.moved_from, job_now.state) == (moved.id, job.id, State.SCHEDULED)
    assert isinstance(job_now, ScheduledJob)
    assert job_now.payload == {"to": "ann"}
    around = {"start": moved.due, "end": moved.due + timedelta(seconds=1)}
    entries = [each for each in client.jobs("flood", **around) if each.id == moved.id]
    assert [(each.payload, each.state) for each in entries] == [({"to": "ann"}, State.SCHEDULED)]
    assert client.cancel(queue="flood", key=f"move {id(client)}") is State.CANCELLED
    assert client.cancel(job.id) is State.CANCELLED
    assert moved.id not in {each.id for each in client.jobs("flood", **around)}
    with pytest.raises(AlreadyFinished, match="was cancelled"):
        client.reschedule(moved.id, delay=DAY)


@each_way
def test_queue_is_paused_limited_and_resumed(client):
    try:
        assert client.pause("moved").paused
        assert client.set_rate("moved", "90/m").rate == Rate(jobs=90, seconds=60)
        control = client.queue("moved").control
        assert (control.paused, control.rate) == (True, Rate(jobs=90, seconds=60))
    finally:
        assert not client.resume("moved").paused
        assert client.set_rate("moved", None).rate is None
    assert {"plain", "moved"} <= {queue.name for queue in client.queues()}


@pytest.mark.parametrize("kind", ["producer", "direct"])
def test_producer_uses_its_own_queue_alone(holder, deployment, kind):
    service = holder(kind, "plain")
    client = Client.connect(deployment, session=service, patience=PATIENT, direct=kind == "direct")
    job = client.schedule("plain", 1, delay=3600, key=f"by a {kind}")
    assert client.cancel(client.schedule("plain", 1).id) is State.CANCEL_REQUESTED
    assert wait_until(lambda: client.get(job.id).state is State.SCHEDULED)
    assert job.id in [each.id for each in client.jobs("plain", start=job.due, end=job.due + timedelta(seconds=1))]
    moved = client.reschedule(job.id, delay=7200)
    assert client.get(job.id).id == moved.id
    for queue in ("flood", "plain-vip"):
        with pytest.raises(Forbidden):
            client.schedule(queue, 1)
    assert client.cancel_many([moved.id]) == [State.CANCELLED]
    large = client.schedule("plain", "x" * 300_000, delay=3600)
    assert client.cancel(large.id) is State.CANCELLED
    elsewhere = client if kind == "direct" else Client.connect("theirs", session=service)
    with pytest.raises(Forbidden):
        elsewhere.queues()
