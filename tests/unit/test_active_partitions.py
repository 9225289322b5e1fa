"""A partition takes jobs once its schedule stands, and not before: the queries, how often, and what is answered."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.settings import MOST_NAMES, RETRY_SECONDS, ActivePartitions, TicksFirst
from dueline.config.environment import Settings
from dueline.config.registry import Registry
from dueline.core import rows
from dueline.core.job import Partition
from dueline.core.message import Message
from dueline.core.partitions import all_tick
from dueline.core.threads import FAILED_FOR_SECONDS
from dueline.errors import NotYet, QueueNotFound, Throttled, Unavailable
from dueline.testing import MemoryPayloads, MemoryQueue, MemoryTable, VirtualClock
from tests.api_harness import CONTEXT, SETTINGS, call_api, import_function, sqs_record
from tests.builders import NOW, a_job, a_queue, emails
from tests.system import System

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "GetParameters")
UNREACHABLE = EndpointConnectionError(endpoint_url="https://ssm.eu-west-1.amazonaws.com")


class Ssm:
    """What stacks published, by queue; `fault` is raised in its place."""

    def __init__(self, **published):
        self.published = published
        self.fault = None
        self.requests = []

    def __call__(self, names):
        self.requests.append(names[0])
        if self.fault is not None:
            raise self.fault
        return {name: a_queue(name=name, partitions=self.published[name]) for name in names if name in self.published}


@pytest.fixture
def clock():
    return VirtualClock(NOW)


@pytest.fixture
def ssm():
    return Ssm()


@pytest.fixture
def registry(clock, ssm):
    """Queues of four partitions each, as far as they are published. The invoices are read by a request of their own."""
    names = ("emails", *(f"queue-{number}" for number in range(1, MOST_NAMES)), "invoices")
    declared = {name: a_queue(name=name, partitions=4) for name in names}
    active = ActivePartitions(ssm, queues=declared, clock=clock, jitter=lambda: 0.5)
    return Registry(declared, active_partitions=active)


# Which partitions take jobs


def test_undeclared_queue_needs_no_request(registry, ssm):
    with pytest.raises(QueueNotFound, match=r"not in queues\.yaml"):
        registry.taking("nobody")
    assert not registry.takes(Partition(queue="nobody", number=0))
    assert ssm.requests == []


# How often SSM is queried


def test_ssm_is_not_queried_once_all_active(registry, ssm, clock):
    ssm.published["emails"] = 4
    for _ in range(100):
        registry.taking("emails")
        assert registry.takes(emails(3))
        clock.sleep(3600)
    assert ssm.requests == ["emails"]


def test_partitions_are_read_again_in_seconds(registry, ssm, clock):
    for _ in range(100):
        with pytest.raises(NotYet):
            registry.taking("emails")
    assert ssm.requests == ["emails"]
    ssm.published["emails"] = 2
    clock.sleep(RETRY_SECONDS)
    assert registry.taking("emails").partitions == 2
    ssm.published["emails"] = 4
    assert registry.taking("emails").partitions == 2
    clock.sleep(RETRY_SECONDS)
    assert registry.taking("emails").partitions == 4
    assert ssm.requests == ["emails"] * 3


@pytest.mark.parametrize(("fault", "error"), [(THROTTLED, Throttled), (UNREACHABLE, Unavailable)])
def test_last_answer_of_ssm_holds(registry, ssm, clock, fault, error):
    ssm.published["emails"] = 2
    registry.taking("emails")
    ssm.fault = fault
    clock.sleep(RETRY_SECONDS)
    assert registry.taking("emails") == replace(registry.queue("emails"), partitions=2)
    with pytest.raises(error, match="reading how far queues are deployed"):
        registry.taking("invoices")


def test_failure_is_remembered_for_under_a_second(registry, ssm, clock):
    ssm.fault = UNREACHABLE
    for name in ("emails", "invoices", "emails"):
        with pytest.raises(Unavailable):
            registry.taking(name)
        assert not registry.takes(Partition(queue=name, number=0))
    assert ssm.requests == ["emails"]
    ssm.fault, ssm.published = None, {"emails": 4, "invoices": 4}
    clock.sleep(FAILED_FOR_SECONDS)
    assert registry.taking("invoices").partitions == 4


# Ingest


@pytest.mark.parametrize(
    ("ticked", "later", "requests"),
    [((0, 1, 2, 3), 0, []), ((0, 1, 2), 0, ["emails"]), ((0, 1, 2, 3), 3600, ["emails"])],
    ids=["all tick", "one never", "long ago"],
)
def test_ssm_is_queried_only_without_ticks(registry, ssm, clock, ticked, later, requests):
    system, ssm.published["emails"] = System(a_queue(partitions=4)), 3
    for number in ticked:
        system.tick(emails(number))
    now = system.clock.now() + timedelta(seconds=later)
    active_partitions = TicksFirst(
        lambda queue: all_tick(queue, table=system.table, now=now),
        active_partitions=registry.active_partitions,
        clock=clock,
    )
    calls = system.calls()
    for _ in range(3):
        assert active_partitions(registry.queue("emails")) == (3 if requests else 4)
    assert (ssm.requests, calls) == (requests, ["table.read"])
    clock.sleep(RETRY_SECONDS)
    active_partitions(registry.queue("emails"))
    assert len(calls) == (2 if requests else 1)


def test_unanswered_state_table_is_read_for_no_other_queue(registry, ssm, clock):
    """A request that is not answered takes seconds: one for each of many queues would outlast the function."""
    ssm.published, reads = {"emails": 4, "invoices": 4}, []

    def read(queue):
        reads.append(queue.name)
        clock.sleep(6)
        raise Unavailable("no answer")

    active = TicksFirst(read, active_partitions=registry.active_partitions, clock=clock)
    taking = replace(registry, active_partitions=active)
    assert taking.taking_counts("emails", "invoices") == {"emails": 4, "invoices": 4}
    assert reads == ["emails"]
    clock.sleep(RETRY_SECONDS)
    active(registry.queue("emails"))
    assert reads == ["emails"] * 2


def test_partition_that_is_no_longer_declared_takes_no_jobs(registry, ssm):
    """A queue's stack may still have those that queues.yaml had before."""
    ssm.published["emails"] = 6
    assert (registry.taking("emails").partitions, registry.taking_counts("emails")) == (4, {"emails": 4})
    assert [registry.takes(emails(number)) for number in (3, 4)] == [True, False]


# The functions


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "jobs", {"payload": 1, "delay": 0}),
        ("POST", "jobs", {"payload": 1, "delay": 3600}),
        ("PUT", "schedules/daily", {"every": 60}),
        ("POST", "schedules/daily/resume", None),
    ],
)
def test_api_refuses_jobs_for_an_undeployed_queue(monkeypatch, registry, clock, method, path, body):
    api, inbound = import_function(monkeypatch, "api", SETTINGS, registry), MemoryQueue(name="inbound", clock=clock)
    for name, port in (("table", MemoryTable()), ("payloads", MemoryPayloads())):
        monkeypatch.setattr(type(api.DEPLOYMENT), name, port)
    for name, port in (("clock", clock), ("queue", lambda _: inbound)):
        monkeypatch.setattr(api.DEPLOYMENT, name, port)
    status, reply = call_api(api, method, f"/queues/emails/{path}", body)
    assert (status, reply["code"]) == (503, "not_yet")
    assert reply["detail"] == "queue 'emails' takes no jobs yet: its stack is not deployed"
    assert inbound.deliveries == []


def test_ingest_writes_only_where_schedules_exist(registry, monkeypatch, ssm):
    ssm.published["emails"] = 2
    monkeypatch.setattr(AwsDeployment, "table", table := MemoryTable())
    # The function goes by this machine's clock.
    due = datetime.now(UTC) + timedelta(hours=1)
    there, not_yet = (a_job(due=due, partition=emails(number)) for number in (1, 2))
    messages = {"there": Message.of(there, group="emails"), "not yet": Message.of(not_yet, group="emails")}
    event = {"Records": [sqs_record(name, each.body, **each.attributes) for name, each in messages.items()]}
    settings = Settings(deployment="d", queue_urls="http://localhost/")
    answer = import_function(monkeypatch, "ingest", settings, registry).handler(event, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "not yet"}]}
    assert table.read([rows.job_key(there.id), rows.job_key(not_yet.id)]).rows.keys() == {rows.job_key(there.id)}
