"""What a deployment publishes of its queues, as moto keeps it in SSM."""

import json
import math
import threading
from dataclasses import replace

import pytest

from dueline.aws.botocore_errors import map_caller_errors
from dueline.aws.settings import KNOWN_FOR_SECONDS, RETRY_SECONDS, ActivePartitions, SettingsStore
from dueline.aws.worker_deployment import WorkerDeployment
from dueline.config.names import Names
from dueline.config.registry import Registry
from dueline.core.queue_settings import WorkSettings
from dueline.errors import QueueNotFound, Throttled, Unavailable
from dueline.testing import VirtualClock
from dueline.worker import worker
from dueline.worker.delivery import EventKind
from tests.builders import NOW, a_queue
from tests.contract.answers import answering, error
from tests.waiting import wait_until
from tests.work import Events

NAMES = Names("direct")
WORK = WorkSettings(queue=a_queue(track=True), urls=("https://1",), dead_letters="https://dlq", max_receives=7)


@pytest.fixture
def ssm(session):
    return session.client("ssm")


@pytest.fixture
def deployment(ssm):
    return SettingsStore(ssm, NAMES, clock=VirtualClock(NOW))


def publish(ssm, value, name="emails"):
    ssm.put_parameter(Name=NAMES.queue_parameter(name), Value=json.dumps(value), Type="String", Overwrite=True)


def test_worker_reads_its_queues_settings(ssm, deployment):
    publish(ssm, WORK.to_json())
    assert deployment.work("emails") == WORK
    assert deployment.queue("emails") == WORK.queue
    assert deployment.queues() == [WORK.queue]


def test_connection_reloads_settings(session, ssm):
    publish(ssm, WORK.to_json())
    events = Events()
    connection = WorkerDeployment("direct", session=session).connect("emails", report=events)
    later = replace(WORK, queue=a_queue(track=True, priorities=2), urls=("https://1", "https://2"), longest_run=60)
    publish(ssm, later.to_json())
    connection.refresh()
    assert [event.kind for event in events] == [EventKind.CHANGED]
    assert (connection.settings, len(connection.levels)) == (later, 2)


def test_connecting_a_queue_syncs_the_clock(session, ssm):
    publish(ssm, WORK.to_json())
    assert math.isfinite(WorkerDeployment("direct", session=session).connect("emails", report=print).behind())


def test_exact_clock_ends_with_its_worker(session, ssm):
    publish(ssm, replace(WORK, queue=a_queue(precise=True)).to_json())
    before = set(threading.enumerate())
    equipped = worker.connect("direct", session=session)
    equipped.connect("emails")
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["clock"]
    equipped.close()
    assert wait_until(lambda: set(threading.enumerate()) <= before)


def test_new_queues_are_read_ten_at_a_request(ssm, deployment):
    """A hundred new queues, of which no tick is known, must not reach SSM's quota of requests."""
    queues = {name: a_queue(name=name, partitions=2) for name in (f"queue-{number}" for number in range(25))}
    for name in list(queues)[1:]:
        publish(ssm, {**WORK.to_json(), "partitions": 1} if name != "queue-9" else [], name)
    sent = []
    ssm.meta.events.register_first("before-send", lambda **_: sent.append(1))
    active = ActivePartitions(deployment.published, queues=queues, clock=VirtualClock(NOW))
    registry = Registry(queues, active_partitions=active)
    assert registry.taking_counts() == {"queue-0": 0} | {name: 1 for name in list(queues)[1:] if name != "queue-9"}
    with pytest.raises(Unavailable, match="parameter /dueline/direct/queues/queue-9 cannot be read"):
        registry.taking("queue-9")
    assert len(sent) == 3


def test_partitions_stand_whatever_is_published_later(ssm, deployment):
    """Neighbours of a queue that grows are read with it: none of them may lose what was known of it."""
    grown, growing = (a_queue(name=name, partitions=2) for name in ("emails", "invoices"))
    queues, clock = {each.name: each for each in (grown, growing)}, VirtualClock(NOW)
    active = ActivePartitions(deployment.published, queues=queues, clock=clock)
    publish(ssm, WORK.to_json() | {"partitions": 2}, grown.name)
    publish(ssm, WORK.to_json() | {"partitions": 1}, growing.name)
    assert (active(grown), active(growing)) == (2, 1)
    ssm.delete_parameter(Name=NAMES.queue_parameter(grown.name))
    publish(ssm, [], growing.name)
    clock.sleep(RETRY_SECONDS)
    assert (active(growing), active(grown)) == (1, 2)


@pytest.mark.parametrize(
    "read", [SettingsStore.queue, SettingsStore.work, lambda store, _: store.queues()], ids=["queue", "work", "queues"]
)
def test_parameter_that_cannot_be_read_is_named(ssm, deployment, read):
    publish(ssm, {})
    with pytest.raises(Unavailable, match=f"parameter {NAMES.queue_parameter('emails')} cannot be read"):
        read(deployment, "emails")


@pytest.mark.parametrize("name", ["nobody", "no/queue", ""])
def test_missing_settings_are_not_found(deployment, name):
    with pytest.raises(QueueNotFound, match="no queue"):
        deployment.work(name)


def published_settings(partitions=1):
    value = json.dumps({**WORK.to_json(), "partitions": partitions})
    return 200, {"Parameter": {"Name": NAMES.queue_parameter("emails"), "Value": value}}


def of_answers(*answers, jitter=0.0):
    """Return what is published to a process, its clock, and its requests, which are answered one after another."""
    requested_at, clock, client = [], VirtualClock(NOW), answering("ssm", *answers)
    client.meta.events.register_first("before-send", lambda **_: requested_at.append(clock.monotonic()))
    return SettingsStore(client, NAMES, clock=clock, jitter=lambda: jitter), clock, requested_at


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError", "AccessDeniedException"])
def test_unreadable_queue_keeps_its_settings(code):
    deployment, clock, requested_at = of_answers(published_settings(), error(code), published_settings(partitions=2))
    counts = [deployment.queue("emails").partitions]
    for _ in range(3):
        clock.sleep(KNOWN_FOR_SECONDS)
        counts += [deployment.queue("emails").partitions for _ in range(3)]
    assert counts == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert len(requested_at) == 4


def test_unread_queue_has_no_default_settings():
    deployment, _, _ = of_answers(error("ThrottlingException"), published_settings())
    with pytest.raises(Throttled), map_caller_errors("scheduling"):
        deployment.queue("emails")
    assert deployment.queue("emails").partitions == 1


def test_removed_queue_is_refused_at_once():
    deployment, clock, _ = of_answers(published_settings(), error("ParameterNotFound"))
    deployment.queue("emails")
    clock.sleep(KNOWN_FOR_SECONDS)
    for _ in range(2):
        with pytest.raises(QueueNotFound):
            deployment.queue("emails")


@pytest.mark.parametrize(("jitter", "seconds"), [(0.0, 60), (0.5, 45), (1.0, 30)])
def test_refresh_times_are_spread(jitter, seconds):
    deployment, clock, requested_at = of_answers(published_settings(), jitter=jitter)
    for _ in range(200):
        deployment.queue("emails")
        clock.sleep(1)
    began = requested_at[0]
    assert [at - began for at in requested_at] == list(range(0, 200, seconds))
