"""A direct client, which asks SQS and DynamoDB themselves, as moto answers for them."""

import json
import math
import os
import threading
import uuid
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.loaders import create_loader
from moto import mock_aws

from dueline import (
    AlreadyFinished,
    Client,
    ClientTooOld,
    Control,
    DeploymentNotFound,
    DeploymentTooOld,
    Forbidden,
    InvalidJob,
    Job,
    JobNotFound,
    KeyReused,
    NewJob,
    NotYet,
    Patience,
    QueueNotFound,
    Rate,
    Route,
    State,
    Throttled,
    Unavailable,
)
from dueline.aws import clients
from dueline.aws.dynamodb.table import DynamoTable
from dueline.cli.import_ids import ImportIds
from dueline.client.asked_terms import id_terms
from dueline.config import registry
from dueline.config.names import Names
from dueline.config.settings import PUBLISHED_SCHEMAS, ApiSettings
from dueline.lookup.outcome import Outcome, note_outcome
from dueline.model import job as core
from dueline.model import rows
from dueline.model.job import JobId, Partition
from tests.builders import a_queue, an_id
from tests.forked import in_a_child
from tests.opentelemetry import TRACER, parent_of
from tests.waiting import HANG_SECONDS

NAMES = Names("direct")
REGION = "eu-west-1"
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
QUEUES = [a_queue(partitions=3, track=True), a_queue(name="invoices", retention=timedelta(days=3), precise=True)]


# What AWS's services look like is read once.
LOADER = create_loader()


@pytest.fixture
def session():
    own = botocore.session.Session()
    own.register_component("data_loader", LOADER)
    with mock_aws():
        yield boto3.Session("AKIDEXAMPLE", "s", region_name=REGION, botocore_session=own)


@cache
def client_of(session, service):
    """Return a client that the tests ask with: to make one takes longer than to ask."""
    return session.client(service)


@pytest.fixture
def sqs(session):
    return session.client("sqs")


@pytest.fixture
def deployment(session, sqs):
    keys = ("pk", "HASH"), ("sk", "RANGE")
    for table in (NAMES.table, NAMES.state):
        session.client("dynamodb").create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": key, "KeyType": type} for key, type in keys],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
        )
    for name in (
        NAMES.inbound,
        *map(NAMES.queue, ("emails", "invoices")),
        *map(NAMES.queue_dlq, ("emails", "invoices")),
    ):
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
    session.client("s3").create_bucket(
        Bucket="direct-payloads", CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    settings = ApiSettings(
        deployment="direct",
        queue_urls=url.rpartition("/")[0] + "/",
        payloads="direct-payloads",
        direct_horizon=890,
        lookahead=240,
    )
    publish(session, NAMES.settings_parameter, asdict(settings))
    publish(session, NAMES.schema_parameter, PUBLISHED_SCHEMAS)
    for queue in QUEUES:
        publish(session, NAMES.queue_parameter(queue.name), {"url": "…", **registry.settings_of(queue)})
    return asdict(settings)


def publish(session, name, told):
    client_of(session, "ssm").put_parameter(Name=name, Value=json.dumps(told), Type="String", Overwrite=True)


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


def lose_answers(session, operation, times, *, after=0):
    """Lose the answers to so many requests that took effect, behind the first few."""
    lost = iter([False] * after + [True] * times)

    def lose(event_name, **_):
        if event_name.endswith(operation) and next(lost, False):
            raise ConnectionClosedError(endpoint_url="https://aws")

    session.events.register_last("before-send", lose)


def refused_with(code):
    def refuse(**_):
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "any")

    return refuse


# The same methods


def test_a_job_that_is_due_soon_goes_to_its_queue_and_a_later_one_into_the_table(client, session, sqs):
    soon, later = client.schedule("emails", {"n": 1}), client.schedule("emails", {"n": 2}, delay=HOUR, tenant="acme")
    assert (soon.route, soon.state) == (Route.DIRECT, State.DISPATCHED)
    assert (later.route, later.state) == (Route.TABLE, State.SCHEDULED)
    assert ids_in(sqs, NAMES.queue("emails")) == [soon.id]
    (job,) = stored(session)
    assert (str(job.id), job.payload, job.tenant) == (later.id, '{"n":2}', "acme")
    assert messages(sqs, NAMES.inbound) == []


def test_many_are_scheduled_in_their_order_with_a_result_or_an_error_each(client, session):
    jobs = [NewJob(payload=n, delay=HOUR + timedelta(seconds=n)) for n in range(25)]
    jobs[7] = NewJob(payload="x" * 300_000, delay=-1)
    results = client.schedule_many("invoices", jobs)
    assert isinstance(results.pop(7), InvalidJob)
    assert [job.due - results[0].due >= timedelta(seconds=n - 0.5) for n, job in enumerate(results)] == [True] * 24
    assert {str(job.id) for job in stored(session)} == {job.id for job in results}


def test_each_job_of_a_stream_that_fills_one_dict_again_and_again_has_its_own_payload(client, session):
    def stream():
        row = {}
        for n in range(10):
            row["n"] = n
            yield NewJob(payload=row, delay=HOUR)

    assert all(isinstance(each, Job) for each in client.schedule_each("emails", stream()))
    assert sorted(json.loads(job.payload)["n"] for job in stored(session)) == list(range(10))


def test_a_job_that_is_sent_again_has_the_payload_that_it_was_given_with(client, session):
    row = {"n": 1}
    draft = client._api.draft(NewJob(payload=row, delay=HOUR))
    (first,) = client._api.schedule("emails", [draft])
    row["n"] = 2
    (again,) = client._api.schedule("emails", [draft.after(Unavailable("lost").copy(job_id=first.id))])
    assert again == first
    assert [job.payload for job in stored(session)] == ['{"n":1}']


@pytest.mark.parametrize("payload", [{1, 2}, math.nan, "x" * (10 * 1024 * 1024)], ids=["a set", "NaN", "over 10 MiB"])
def test_a_payload_that_is_no_good_is_refused_before_any_request(session, deployment, payload):
    asked = []
    session.events.register("before-send", lambda event_name, **_: asked.append(event_name))
    client = a_client(session)
    asked.clear()
    with pytest.raises(InvalidJob, match=r"^payload "):
        client.schedule("emails", payload, delay=HOUR)
    assert asked == []


def test_a_job_is_looked_up_and_taken_back(client):
    job = client.schedule("emails", 1, delay=HOUR)
    assert client.get(job.id) == job
    assert client.cancel(job.id) is State.CANCELLED
    assert client.get(job.id).state is State.CANCELLED
    direct = client.schedule("emails", 1)
    assert client.cancel_many([direct.id, job.id, "no id"])[:2] == [State.CANCEL_REQUESTED, State.CANCELLED]


def test_a_job_is_looked_up_with_its_attempts_where_its_queue_tracks(client, session):
    table, began = (
        DynamoTable(session.client("dynamodb"), NAMES.table, state=NAMES.state),
        datetime(2026, 11, 21, 7, 5, tzinfo=UTC),
    )
    outcome = Outcome(state=State.FAILED, attempts=2, started=began, ended=began + HOUR, error="TimeoutError")
    for queue, state in (("emails", State.FAILED), ("invoices", State.DISPATCHED)):
        id = JobId.parse(client.schedule(queue, 1).id)
        assert note_outcome(id, outcome, expires=id.due + DAY, table=table)
        assert client.get(str(id)).state is state
    job = client.schedule("emails", 1, key="order 5")
    note_outcome(JobId.parse(job.id), outcome, expires=job.due + DAY, table=table)
    told = client.schedule("emails", 1, key="order 5")
    assert told == replace(job, state=State.FAILED, attempts=2, started=began, ended=began + HOUR, error="TimeoutError")


def test_a_large_payload_is_kept_in_s3_and_the_message_points_to_it(client, sqs, session):
    payload = {"text": "x" * 2_000_000}
    client.schedule("emails", payload)
    (message,) = messages(sqs, NAMES.queue("emails"))
    place = json.loads(message["Body"])[1]
    kept = session.client("s3").get_object(Bucket=place["s3BucketName"], Key=place["s3Key"])["Body"].read()
    assert place["s3BucketName"] == "direct-payloads"
    assert json.loads(kept) == payload


def test_jobs_carry_the_trace_of_the_span_that_is_current_where_they_are_scheduled(client, session, sqs):
    with TRACER.start_as_current_span("order") as span:
        client.schedule("emails", 1)
        client.schedule_many("emails", [NewJob(payload=n, delay=HOUR) for n in range(2)])
    (sent,) = messages(sqs, NAMES.queue("emails"))
    assert sent["MessageAttributes"]["traceparent"] == {"StringValue": parent_of(span), "DataType": "String"}
    assert [job.trace.parent for job in stored(session)] == [parent_of(span)] * 2


def test_a_key_is_one_job(client, session):
    first = client.schedule("emails", 1, delay=HOUR, key="order 5")
    assert client.schedule("emails", 1, delay=HOUR, key="order 5").id == first.id
    with pytest.raises(KeyReused):
        client.schedule("emails", 2, delay=HOUR, key="order 5")
    assert [str(job.id) for job in stored(session)] == [first.id]


def test_without_a_key_a_job_is_one_row(client, session):
    client.schedule("emails", 1, delay=HOUR)
    assert session.client("dynamodb").scan(TableName=NAMES.table)["Count"] == 1


def stored(session):
    """Return the jobs that have rows."""
    table = DynamoTable(session.client("dynamodb"), NAMES.table, state=NAMES.state)
    pages = [table.page(Partition(queue="emails", number=number), after=rows.FIRST, until="~") for number in range(3)]
    pages += [table.page(Partition(queue="invoices", number=0), after=rows.FIRST, until="~")]
    found = [row for page in pages for row in page.rows]
    return [rows.read_job(row) for row in found if rows.prefix_and_kind(row["sk"])[1] == rows.JOB]


def test_lines_go_under_ids_that_their_run_makes_and_are_one_row_each_however_often(client, session):
    ids = ImportIds.begun(uuid.uuid4(), id_terms(client, "emails"), at=None, delay=HOUR)
    jobs = [NewJob(payload=line, id=str(ids.id("emails", line))) for line in range(3)]
    for _ in range(2):
        assert {(job.route, job.state) for job in client.schedule_many("emails", jobs)} == {
            (Route.TABLE, State.SCHEDULED)
        }
    assert {str(job.id): job.payload for job in stored(session)} == {job.id: str(job.payload) for job in jobs}


def map_ids(jobs):
    return [str(job.id) for job in jobs]


def store(session, job, payload):
    """Put a job's row, as ingest does."""
    id = JobId.parse(job.id)
    row = rows.job_row(core.Job(id=id, payload=payload, expires=id.due + DAY))
    DynamoTable(client_of(session, "dynamodb"), NAMES.table, state=NAMES.state).write([row])


def test_a_job_moves_and_is_listed(client, session, sqs):
    job = client.schedule("emails", {"to": "ann"}, delay=2 * HOUR)
    store(session, job, '{"to":"ann"}')
    assert [(each.id, each.payload) for each in client.jobs("emails")] == [(job.id, {"to": "ann"})]
    moved = client.reschedule(job.id, delay=HOUR)
    assert client.get(job.id).moved_to == moved.id
    assert [each.id for each in client.jobs("emails", end=datetime.now(UTC) + 2 * HOUR)] == [moved.id]
    assert list(client.jobs("emails", start=datetime.now(UTC) + 2 * HOUR)) == []
    with pytest.raises(AlreadyFinished):
        client.reschedule(job.id, delay=3 * HOUR)


def test_a_payload_that_is_no_json_is_told_as_text(client, session):
    store(session, client.schedule("emails", 1, delay=HOUR), "NaN")
    (job,) = client.jobs("emails")
    assert (job.payload, job.payload_text) == (None, "NaN")


def test_more_than_a_page_is_listed_in_order(client, session):
    asked = [NewJob(payload=n, delay=HOUR + timedelta(seconds=n)) for n in range(130)]
    for n, job in enumerate(client.schedule_many("emails", asked)):
        store(session, job, str(n))
    assert [job.payload for job in client.jobs("emails")] == list(range(130))


def test_queues_are_told_with_their_settings_and_how_they_do(client):
    assert client.queues() == QUEUES
    client.schedule("emails", 1)
    told = client.queue("emails")
    assert (told.scheduled, told.depth.waiting, told.dead) == (0, 1, 0)


def test_a_queue_is_paused_resumed_and_limited(client):
    assert client.pause("emails") == Control(paused=True)
    limited = client.set_rate("emails", "50/s")
    assert (limited.paused, limited.rate) == (True, Rate(jobs=50))
    assert datetime.now(UTC) - datetime.fromisoformat(limited.rate_set) < timedelta(minutes=1)
    assert client.queue("emails").control == limited
    assert client.resume("emails") == Control(rate=Rate(jobs=50), rate_set=limited.rate_set)
    lifted = client.set_rate("emails", None)
    assert (lifted.paused, lifted.rate) == (False, None)
    assert client.queue("invoices").control == Control()


# Errors and repeats


def test_a_deployment_that_is_not_there_is_not_found(session):
    with pytest.raises(DeploymentNotFound, match="finding the deployment 'direct'"):
        a_client(session)


@pytest.mark.parametrize(
    ("told", "error", "says"),
    [
        (None, DeploymentTooOld, "'direct' is of a version before .* deploy it with this version"),
        ({"schema": 0}, DeploymentTooOld, "or install the version that is deployed"),
        (
            {"schema": 3, "oldest_schema": 2},
            ClientTooOld,
            "takes schemas 2 to 3, .* schema 1: install",
        ),
    ],
)
def test_a_client_and_a_deployment_too_far_apart_in_age_say_so_before_anything_is_written(
    session, deployment, told, error, says
):
    session.client("ssm").delete_parameter(Name=NAMES.schema_parameter)
    if told is not None:
        publish(session, NAMES.schema_parameter, told)
        publish(session, NAMES.settings_parameter, {"all": "else"})
    with pytest.raises(error, match=says):
        a_client(session)


def test_a_client_reads_what_a_later_deployment_publishes_that_still_takes_its_schema(session, deployment):
    publish(session, NAMES.settings_parameter, {**deployment, "something": "new"})
    publish(session, NAMES.schema_parameter, {"schema": 2, "oldest_schema": 1, "something": "else"})
    assert a_client(session).get(a_client(session).schedule("emails", 1).id).state is State.DISPATCHED


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.schedule("nobody", 1),
        lambda client: client.queue("nobody"),
        lambda client: client.pause("nobody"),
        lambda client: client.resume("nobody"),
        lambda client: client.set_rate("nobody", None),
        lambda client: client.get("nobody.0.t.1.00000000-0000-4000-8000-000000000000"),
        lambda client: client.cancel("nobody.0.t.1.00000000-0000-4000-8000-000000000000"),
    ],
)
def test_a_queue_that_is_not_there_is_not_found(client, ask):
    with pytest.raises(QueueNotFound, match="nobody"):
        ask(client)


def test_nothing_is_known_of_a_job_long_past(client):
    with pytest.raises(JobNotFound):
        client.get("emails.0.t.1.00000000-0000-4000-8000-000000000000")


def test_a_url_is_for_clients_over_http():
    with pytest.raises(ValueError, match="url and direct are both given"):
        Client.connect(url="http://localhost", direct=True)


@pytest.mark.parametrize("event", ["before-call.sqs", "before-call.dynamodb"])
def test_what_the_callers_credentials_do_not_allow_is_forbidden_and_not_tried_again(session, deployment, event):
    session.events.register(event, refused_with("AccessDeniedException"))
    client = a_client(session, seconds=0)
    with pytest.raises(Forbidden, match="AccessDenied"):
        client.schedule("emails", 1, key="k")
    job = client.schedule_many("emails", [NewJob(payload=1, key="k")])[0]
    assert isinstance(job, Forbidden)
    assert job.job_id


def test_a_job_whose_answer_was_lost_is_sent_again_as_the_same_job(session, deployment, sqs):
    lose_answers(session, "SendMessageBatch", 3)
    job = a_client(session).schedule("emails", 1)
    assert ids_in(sqs, NAMES.queue("emails")) == [job.id] * 4


def test_a_row_whose_answer_was_lost_is_written_again_as_the_same_job(session, deployment):
    lose_answers(session, "PutItem", 3)
    job = a_client(session).schedule("emails", 1, delay=HOUR)
    assert job.state is State.SCHEDULED
    assert [str(each.id) for each in stored(session)] == [job.id]


def test_what_the_table_throttles_waits_and_never_goes_where_every_queues_jobs_go(session, deployment, sqs):
    throttled = iter([True] * 3)

    def throttle(**_):
        if next(throttled, False):
            refused_with("ProvisionedThroughputExceededException")()

    session.events.register("before-call.dynamodb.PutItem", throttle)
    job = a_client(session).schedule("emails", 1, delay=HOUR)
    assert (job.state, ids_in(sqs, NAMES.inbound)) == (State.SCHEDULED, [])


def test_a_key_whose_answer_was_lost_is_one_job(session, deployment):
    lose_answers(session, "PutItem", 3)
    job = a_client(session).schedule("emails", 1, delay=HOUR, key="order 5")
    assert [str(each.id) for each in stored(session)] == [job.id]


def test_a_repeat_that_cannot_be_looked_up_lets_no_other_job_of_its_call_be_sent_again(session, deployment, sqs):
    # The first job reads its fence; the call of many reads the key's row, and its fence; what is lost, botocore's own
    # second try with it, looks the repeat up.
    lose_answers(session, "BatchGetItem", 2, after=3)
    client = a_client(session)
    first = client.schedule("emails", "keyed", delay=HOUR, key="order 5")
    keyed = NewJob(payload="keyed", delay=HOUR, key="order 5")
    repeat, *others = client.schedule_many("emails", [keyed, *(NewJob(payload=n, delay=HOUR) for n in range(4))])
    assert repeat.id == first.id
    assert {str(job.id) for job in stored(session)} == {first.id, *(job.id for job in others)}


def test_a_repeat_that_can_never_be_looked_up_is_an_error_of_its_own_that_names_its_job(session, deployment):
    lose_answers(session, "BatchGetItem", 100, after=5)
    client = a_client(session, seconds=0)
    first = client.schedule("emails", 1, delay=HOUR, key="order 5")
    keyed = NewJob(payload=1, delay=HOUR, key="order 5")
    other, repeat = client.schedule_many("emails", [NewJob(payload=2, delay=HOUR), keyed])
    assert other.state is State.SCHEDULED
    assert (type(repeat), repeat.job_id, repeat.key) == (Unavailable, first.id, "order 5")


def test_a_client_gives_up_and_names_the_job_that_may_be_scheduled_all_the_same(session, deployment, sqs):
    lose_answers(session, "SendMessageBatch", 100)
    lose_answers(session, "PutItem", 100)
    for delay, came in ((0, lambda: ids_in(sqs, NAMES.queue("emails"))), (HOUR, lambda: map_ids(stored(session)))):
        with pytest.raises(Unavailable) as raised:
            a_client(session, attempts=2).schedule("emails", 1, delay=delay)
        assert set(came()) == {raised.value.job_id}


def test_a_job_in_a_partition_that_is_newer_than_what_a_client_knows_is_found(session, deployment):
    client = a_client(session)
    assert client.schedule("emails", 1, delay=HOUR)
    publish(session, NAMES.queue_parameter("emails"), {"url": "…", **registry.settings_of(a_queue(partitions=5))})
    id, other = (str(an_id(partition=Partition(queue="emails", number=4))) for _ in range(2))
    assert client.get(id).state is State.ACCEPTED
    with pytest.raises(NotYet):
        a_client(session, seconds=0).reschedule(id, delay=HOUR)
    assert client.cancel(id) is State.CANCELLED
    assert client.cancel_many([other, id]) == [State.CANCELLED] * 2


def test_a_job_in_a_partition_that_never_was_is_not_found(client):
    id = str(an_id(partition=Partition(queue="emails", number=77)))
    for ask in (client.get, client.cancel, partial(client.reschedule, delay=HOUR)):
        with pytest.raises(JobNotFound, match="never had a partition 77: it has 0 to 2"):
            ask(id)


def test_a_repeated_move_tells_what_became_of_the_job_that_took_the_others_place(client, session):
    job = client.schedule("emails", 1, delay=HOUR)
    store(session, job, "1")
    at = datetime.now(UTC) + 2 * HOUR
    moved = client.reschedule(job.id, at=at)
    assert (moved.state, client.reschedule(job.id, at=at)) == (State.SCHEDULED, moved)
    client.cancel(moved.id)
    assert client.reschedule(job.id, at=at).state is State.CANCELLED


def test_of_many_cancels_a_stray_one_fails_alone_while_ssm_is_throttled(session, deployment):
    client = a_client(session, attempts=2)
    known, stray = [str(an_id()) for _ in range(3)], str(an_id(partition=Partition(queue="emails", number=77)))
    assert client.cancel_many(known) == [State.CANCELLED] * 3
    client._api._published._client.get_parameter = refused_with("ThrottlingException")
    *others, error = client.cancel_many([*known, stray])
    assert others == [State.CANCELLED] * 3
    assert isinstance(error, Throttled)


def test_of_many_cancels_only_those_are_asked_again_of_which_no_job_was_found(client, session):
    client.cancel_many([])
    known, stray = str(an_id()), str(an_id(partition=Partition(queue="emails", number=77)))
    asked = []
    cancelled = client._api._cancelled
    client._api._cancelled = lambda ids, **of: (asked.append([str(id) for id in ids]), cancelled(ids, **of))[1]
    client.cancel_many([known, stray])
    assert asked == [[known, stray], [stray]]


def test_partitions_that_were_added_are_used_within_a_minute(session, deployment, monkeypatch):
    client = a_client(session)
    clock = client._calls._clock
    assert partitions_of(client) <= {"0", "1", "2"}
    publish(session, NAMES.queue_parameter("emails"), {"url": "…", **registry.settings_of(a_queue(partitions=999))})
    assert partitions_of(client) <= {"0", "1", "2"}
    later = clock.monotonic() + 61
    monkeypatch.setattr(clock, "monotonic", lambda: later)
    assert not partitions_of(client) <= {"0", "1", "2"}


def partitions_of(client):
    jobs = client.schedule_many("emails", [NewJob(payload=1, delay=HOUR) for _ in range(10)])
    return {job.id.split(".")[1] for job in jobs if isinstance(job, Job)}


@pytest.mark.parametrize("linger", [None, 0.005])
def test_a_client_that_was_used_before_a_fork_is_used_in_the_child_as_well(session, deployment, linger):
    client = Client.connect("direct", session=session, direct=True, linger=linger)
    jobs = [NewJob(payload=number) for number in range(30)]

    def schedule():
        assert all(isinstance(each, Job) for each in client.schedule_many("emails", jobs))
        client.cancel_many([client.schedule("emails", 1, delay=HOUR).id])
        assert client.queue("emails")

    schedule()
    assert in_a_child(schedule)
    schedule()


def test_a_child_does_not_wait_for_what_a_thread_of_its_parent_was_making(session, deployment, monkeypatch):
    client, make, parent = a_client(session), clients.dynamodb, os.getpid()
    begun, go_on = threading.Event(), threading.Event()

    def slow(*args, **given):
        begun.set()
        assert os.getpid() != parent or go_on.wait(HANG_SECONDS)
        return make(*args, **given)

    monkeypatch.setattr(clients, "dynamodb", slow)
    making = threading.Thread(target=client.schedule, args=("emails", 1), kwargs={"delay": HOUR, "key": "k"})
    making.start()
    assert begun.wait(HANG_SECONDS)
    assert in_a_child(lambda: client.schedule("emails", 1, delay=HOUR, key="another"))
    go_on.set()
    making.join()
