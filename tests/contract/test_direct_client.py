"""A direct client, which calls SQS and DynamoDB themselves, as moto answers for them."""

import json
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from dueline import (
    Client,
    ClientTooOld,
    DeploymentNotFound,
    DeploymentTooOld,
    Forbidden,
    Job,
    JobNotFound,
    NewJob,
    NotYet,
    Patience,
    State,
    Throttled,
    Unavailable,
)
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.dynamodb_items import as_row
from dueline.aws.server_clock import ServiceClock
from dueline.cli.import_command import id_terms
from dueline.config.environment import PUBLISHED_SCHEMAS
from dueline.config.names import Names
from dueline.core import rows
from dueline.core.job import JobId
from dueline.core.status import Outcome, note_outcome
from tests.api_harness import SETTINGS
from tests.builders import a_queue, an_id, emails
from tests.contract.engines import create_table
from tests.forking import run_in_fork
from tests.opentelemetry import TRACER, parent_of

NAMES = Names("direct")
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
QUEUES = [a_queue(partitions=3, track=True), a_queue(name="invoices", retention=timedelta(days=3), precise=True)]


@cache
def client_of(session, service):
    """Return a client that the tests share: to make one takes longer than to use it."""
    return session.client(service)


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    """Before its second attempt botocore waits."""
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)


@pytest.fixture
def sqs(session):
    return session.client("sqs")


@pytest.fixture
def deployment(session, sqs):
    for table in (NAMES.table, NAMES.state):
        create_table(session.client("dynamodb"), table)
    for name in (NAMES.inbound, *(name(queue.name) for queue in QUEUES for name in (NAMES.queue, NAMES.queue_dlq))):
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
    settings = asdict(replace(SETTINGS, deployment="direct", queue_urls=url.rpartition("/")[0] + "/"))
    publish(session, NAMES.settings_parameter, settings)
    publish(session, NAMES.schema_parameter, PUBLISHED_SCHEMAS)
    for queue in QUEUES:
        publish(session, NAMES.queue_parameter(queue.name), {"url": "…", **queue.to_json()})
    return settings


def publish(session, name, value):
    client_of(session, "ssm").put_parameter(Name=name, Value=json.dumps(value), Type="String", Overwrite=True)


@pytest.fixture
def client(session, deployment):
    return a_client(session)


def a_client(session, **patience):
    return Client.connect("direct", session=session, direct=True, patience=Patience(first_wait=0, **patience))


def messages(sqs, name):
    answer = sqs.receive_message(
        QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"],
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        VisibilityTimeout=0,
    )
    return answer.get("Messages", [])


def ids_in(sqs, name):
    return [each["MessageAttributes"]["dueline-id"]["StringValue"] for each in messages(sqs, name)]


def lose_answers(session, operation, times):
    """Lose the answers to the first so many requests, which take effect."""
    lost = iter([True] * times)

    def lose(event_name, **_):
        if event_name.endswith(operation) and next(lost, False):
            raise ConnectionClosedError(endpoint_url="https://aws")

    session.events.register_last("before-send", lose)


def refused_with(code):
    def refuse(**_):
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "any")

    return refuse


# The same methods


def test_retry_sends_the_payload_as_it_was(client, session):
    row = {"n": 1}
    draft = client._api.draft(NewJob(payload=row, delay=HOUR))
    first = client._api.schedule_many("emails", [draft])
    row["n"] = 2
    again = client._api.schedule_many("emails", [draft])
    assert again == first
    assert [job.payload for job in stored(session)] == ['{"n":1}']


def test_tracked_job_shows_its_attempts(client, session):
    table, began = (
        DynamoTable(session.client("dynamodb"), NAMES.table, state=NAMES.state),
        datetime(2026, 11, 21, 7, 5, tzinfo=UTC),
    )
    ended = {"ended": began + HOUR, "error": "TimeoutError", "kind": "welcome"}
    outcome = Outcome(state=State.FAILED, attempts=2, started=began, **ended)
    for queue, state in (("emails", State.FAILED), ("invoices", State.UNRECORDED)):
        id = JobId.parse(client.schedule(queue, 1).id)
        assert note_outcome(id, outcome, expires=id.due + DAY, table=table)
        assert client.get(str(id)).state is state
    job = client.schedule("emails", 1, key="order 5")
    note_outcome(JobId.parse(job.id), outcome, expires=job.due + DAY, table=table)
    assert client.get(job.id) in client.tracked_jobs("emails", state=State.FAILED, end=job.due + HOUR)
    assert [*client.tracked_jobs("emails", state=State.RUNNING)] == []
    repeat = client.schedule("emails", 1, key="order 5")
    assert repeat == replace(job, state=State.FAILED, attempts=2, started=began, created=False, **ended)


@pytest.mark.parametrize("delay", [60.0, 7200.0])
def test_direct_delay_never_ends_early(session, deployment, monkeypatch, delay):
    """Whatever its machine's clock says, and also once that is set; and as for an id that it makes before."""
    machine = {"ahead": 3600.0}
    monkeypatch.setattr(ServiceClock.__init__, "__defaults__", (lambda: time.time() + machine["ahead"],))
    client = a_client(session)
    for machine["ahead"] in (3600.0, 0.0, 3600.0, -0.4):
        earliest = datetime.now(UTC) + timedelta(seconds=delay)
        assert client.schedule("emails", 1, delay=delay).due >= earliest
        assert id_terms(client, "emails").due(at=None, delay=delay) >= earliest
        if delay > 900:
            job = client.schedule("emails", 1, delay=HOUR)
            assert client.reschedule(job.id, delay=delay).due >= earliest


def test_jobs_carry_the_current_trace(client, session, sqs):
    with TRACER.start_as_current_span("order") as span:
        client.schedule("emails", 1)
        client.schedule_many("emails", [NewJob(payload=n, delay=HOUR) for n in range(2)])
    (sent,) = messages(sqs, NAMES.queue("emails"))
    assert sent["MessageAttributes"]["traceparent"] == {"StringValue": parent_of(span), "DataType": "String"}
    assert [job.trace.parent for job in stored(session)] == [parent_of(span)] * 2


def stored(session):
    """Return the jobs that have rows."""
    kept = map(as_row, session.client("dynamodb").scan(TableName=NAMES.table)["Items"])
    return [rows.read_job(row) for row in kept if rows.prefix_and_kind(row["sk"])[1] == rows.JOB]


# Errors and repeats


def test_missing_deployment_is_not_found(session):
    with pytest.raises(DeploymentNotFound, match="finding the deployment 'direct'"):
        a_client(session).queues()


@pytest.mark.parametrize(
    ("schema", "error", "says"),
    [
        (None, DeploymentTooOld, "'direct' publishes no schema.* deploy it with this version"),
        ({"schema": 0}, DeploymentTooOld, "or install the version that is deployed"),
        (
            {"schema": 3, "oldest_schema": 2},
            ClientTooOld,
            "takes schemas 2 to 3, .* schema 1: install",
        ),
    ],
)
def test_incompatible_schema_is_refused(session, deployment, schema, error, says):
    session.client("ssm").delete_parameter(Name=NAMES.schema_parameter)
    if schema is not None:
        publish(session, NAMES.schema_parameter, schema)
        publish(session, NAMES.settings_parameter, {"all": "else"})
    with pytest.raises(error, match=says):
        a_client(session).queues()


def test_newer_compatible_schema_works(session, deployment):
    publish(session, NAMES.settings_parameter, {**deployment, "something": "new"})
    publish(session, NAMES.schema_parameter, {"schema": 2, "oldest_schema": 1, "something": "else"})
    assert a_client(session).get(a_client(session).schedule("emails", 1).id).state is State.UNRECORDED


@pytest.mark.parametrize(("event", "delay"), [("before-call.sqs", None), ("before-call.dynamodb", HOUR)])
def test_denied_request_is_not_retried(session, deployment, event, delay):
    session.events.register(event, refused_with("AccessDeniedException"))
    client = a_client(session, seconds=0)
    with pytest.raises(Forbidden, match="AccessDenied"):
        client.schedule("emails", 1, delay=delay)
    job = client.schedule_many("emails", [NewJob(payload=1, delay=delay)])[0]
    assert isinstance(job, Forbidden)
    assert job.job_id


def test_lost_answers_leave_one_job(session, deployment, sqs):
    lose_answers(session, "SendMessageBatch", 3)
    lose_answers(session, "PutItem", 3)
    client = a_client(session)
    soon, later = client.schedule("emails", 1), client.schedule("emails", 1, delay=HOUR, key="order 5")
    assert set(ids_in(sqs, NAMES.queue("emails"))) == {soon.id}
    assert later.state is State.SCHEDULED
    assert [str(each.id) for each in stored(session)] == [later.id]


def test_unknown_profile_is_forbidden(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    client = Client.connect("direct", direct=True)
    for call in (client.jobs, client.tracked_jobs):
        with pytest.raises(Forbidden, match="nobodys"):
            next(call("emails"))


def test_giving_up_names_the_job(session, deployment, sqs):
    lose_answers(session, "SendMessageBatch", 100)
    lose_answers(session, "PutItem", 100)
    for delay in (0, HOUR):
        with pytest.raises(Unavailable) as raised:
            a_client(session, attempts=2).schedule("emails", 1, delay=delay)
        came = [str(job.id) for job in stored(session)] if delay else ids_in(sqs, NAMES.queue("emails"))
        assert set(came) == {raised.value.job_id}


def a_live_id(number):
    """Return an id of a partition that is not past its retention by this machine's clock."""
    tomorrow = datetime.now(UTC).replace(microsecond=0) + DAY
    return str(an_id(partition=emails(number), due=tomorrow))


def test_job_in_a_newer_partition_is_found(session, deployment):
    client = a_client(session)
    assert client.schedule("emails", 1, delay=HOUR)
    publish(session, NAMES.queue_parameter("emails"), {"url": "…", **a_queue(partitions=5).to_json()})
    id, other, never = map(a_live_id, (4, 4, 77))
    assert client.get(id).state is State.UNRECORDED
    with pytest.raises(NotYet):
        a_client(session, seconds=0).reschedule(id, delay=HOUR)
    assert client.cancel(id) is State.CANCELLED
    assert client.cancel_many([other, id]) == [State.CANCELLED] * 2
    for call in (client.get, client.cancel, partial(client.reschedule, delay=HOUR)):
        with pytest.raises(JobNotFound, match="never had a partition 77: it has 0 to 4"):
            call(never)


def test_direct_client_follows_moves_and_keys(client, session):
    job = client.schedule("emails", {"to": "ann"}, delay=HOUR, key="order 5")
    moved = client.reschedule(job.id, delay=2 * HOUR)
    answer = client.get(job.id)
    assert (answer.id, answer.moved_from, answer.payload) == (moved.id, job.id, {"to": "ann"})
    assert client.get(queue="emails", key="order 5").id == moved.id
    first, missing = client.cancel_many(queue="emails", keys=["order 5", "order 6"])
    assert (first, type(missing)) == (State.CANCELLED, JobNotFound)
    assert client.cancel(queue="emails", key="order 5") is State.CANCELLED
    assert (client.get(job.id).state, client.cancel(job.id)) == (State.CANCELLED, State.CANCELLED)
    for call in (client.get, client.cancel):
        with pytest.raises(JobNotFound, match="no job of queue emails was scheduled under the key 'order 6'"):
            call(queue="emails", key="order 6")


def test_cancel_in_unknown_partition_fails_alone(session, deployment):
    client = a_client(session, attempts=2)
    existing, stray = [a_live_id(0) for _ in range(3)], a_live_id(77)
    assert client.cancel_many(existing) == [State.CANCELLED] * 3
    client._api._published._client.get_parameter = refused_with("ThrottlingException")
    *others, error = client.cancel_many([*existing, stray])
    assert others == [State.CANCELLED] * 3
    assert isinstance(error, Throttled)


def test_client_works_in_a_forked_child(session, deployment):
    client = Client.connect("direct", session=session, direct=True, linger=0.005)
    jobs = [NewJob(payload=number) for number in range(30)]

    def schedule():
        assert all(isinstance(each, Job) for each in client.schedule_many("emails", jobs))
        client.cancel_many([client.schedule("emails", 1, delay=HOUR).id])
        assert client.queue("emails")

    schedule()
    assert run_in_fork(schedule)
    schedule()
