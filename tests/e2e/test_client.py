"""The Python client against the deployed template, with IAM enforced."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest

from dueline import (
    AlreadyFinished,
    Client,
    DuelineError,
    Forbidden,
    InvalidJob,
    Job,
    JobNotFound,
    NewJob,
    QueueNotFound,
    Rate,
    Route,
    State,
)
from dueline.config.names import Names
from local.emulator import ACCOUNT, CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints
from local.signing_proxy import signing_proxy
from tests.e2e.inbox import Inbox, wait_until

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch, emulator: Emulator) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(emulator.authority))


@pytest.fixture(params=[False, True], ids=["over http", "direct"])
def client(request: pytest.FixtureRequest, endpoints: Endpoints) -> Client:
    """A client of the deployment, found by its name, with an administrator's credentials."""
    return Client.connect("e2e", session=boto3.Session(region_name=REGION, **CREDENTIALS), direct=request.param)


@pytest.fixture(scope="module")
def service(emulator: Emulator, endpoints: Endpoints) -> boto3.Session:
    """The credentials of a service that has the managed policy for producers of emails, and nothing else."""
    iam = emulator.client("iam")
    iam.create_user(UserName="service")
    policy = f"arn:aws:iam::{ACCOUNT}:policy/{Names('e2e').producer_policy('emails')}"
    iam.attach_user_policy(UserName="service", PolicyArn=policy)
    key = iam.create_access_key(UserName="service")["AccessKey"]
    return boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)


def test_a_job_is_scheduled_looked_up_and_taken_back(client: Client, emulator: Emulator) -> None:
    at = datetime.now(UTC) + DAY
    job = client.schedule("emails", {"to": "ann"}, at=at)
    table = emulator.client("dynamodb").scan(TableName=Names("e2e").table)["Items"]
    # The client made its id: no key was needed.
    assert not [row for row in table if row["sk"]["S"].startswith("!key") and row["id"]["S"] == job.id]
    assert timedelta() <= job.due - at < timedelta(milliseconds=1)
    assert (job.queue, job.route, job.state) == ("emails", Route.TABLE, State.SCHEDULED)
    assert wait_until(lambda: client.get(job.id).state is State.SCHEDULED)
    assert client.cancel(job.id) is State.CANCELLED
    assert client.get(job.id).state is State.CANCELLED


def test_a_job_arrives_with_its_payload(client: Client, inbox: Callable[[str], Inbox]) -> None:
    arriving = inbox("invoices")
    job = client.schedule("invoices", {"é": [1, None]}, delay=1)
    assert (job.route, job.state) == (Route.DIRECT, State.DISPATCHED)
    assert wait_until(lambda: bool(arriving.of(job.id)))
    assert {landed.payload for landed in arriving.of(job.id)} == {r'{"\u00e9":[1,null]}'}
    assert client.cancel(job.id) is State.CANCEL_REQUESTED


def test_many_are_scheduled_and_cancelled_in_order_each_for_itself(client: Client) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + DAY
    asked = [NewJob(payload=n, at=start + timedelta(seconds=n)) for n in range(30)]
    asked[25] = NewJob(payload=25, delay=-1)
    results = client.schedule_many("invoices", asked)
    assert isinstance(results.pop(25), InvalidJob)
    jobs = [job for job in results if isinstance(job, Job)]
    assert [job.due for job in jobs] == [each.at for each in asked if each.at]
    assert client.cancel_many(job.id for job in jobs[:20]) == [State.CANCELLED] * 20


def test_a_job_moves_and_is_listed_until_it_is_taken_back(client: Client) -> None:
    job = client.schedule("invoices", {"to": "ann"}, delay=3 * DAY, key=f"move {id(client)}")
    assert wait_until(lambda: client.get(job.id).state is State.SCHEDULED)
    moved = client.reschedule(job.id, at=job.due - DAY)
    assert moved.due == job.due - DAY
    assert client.reschedule(job.id, at=job.due - DAY) == moved
    assert (client.get(job.id).state, client.get(job.id).moved_to) == (State.CANCELLED, moved.id)
    around = {"start": moved.due, "end": moved.due + timedelta(seconds=1)}
    listed = [each for each in client.jobs("invoices", **around) if each.id == moved.id]
    assert [(each.payload, each.state) for each in listed] == [({"to": "ann"}, State.SCHEDULED)]
    assert client.cancel(moved.id) is State.CANCELLED
    assert moved.id not in {each.id for each in client.jobs("invoices", **around)}
    with pytest.raises(AlreadyFinished, match="was cancelled"):
        client.reschedule(moved.id, delay=DAY)


def test_queues_tell_their_settings_and_how_they_do(client: Client) -> None:
    assert {"emails", "invoices"} <= {queue.name for queue in client.queues()}
    assert client.queue("emails").dead == 0


def test_a_queue_is_paused_limited_and_let_go(client: Client) -> None:
    try:
        assert client.pause("archive").paused
        assert client.set_rate("archive", "90/m").rate == Rate(jobs=90, seconds=60)
        told = client.queue("archive").control
        assert (told.paused, told.rate) == (True, Rate(jobs=90, seconds=60))
    finally:
        assert not client.resume("archive").paused
        assert client.set_rate("archive", None).rate is None


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda client: client.schedule("nobody", 1), QueueNotFound),
        (lambda client: client.get("emails.0.t.1000.00000000-0000-4000-8000-000000000000"), JobNotFound),
        (lambda client: client.cancel("nothing"), JobNotFound),
        (lambda client: client.schedule("emails", 1, at=datetime(2999, 1, 1, tzinfo=UTC)), InvalidJob),
    ],
)
def test_what_is_refused_has_its_error(
    client: Client, ask: Callable[[Client], object], error: type[DuelineError]
) -> None:
    with pytest.raises(error):
        ask(client)


def test_a_producer_finds_the_api_and_uses_its_own_queue_alone(service: boto3.Session) -> None:
    client = Client.connect("e2e", session=service)
    id = client.schedule("emails", 1, delay=3600).id
    assert client.get(id).id == id
    assert client.cancel(id) is State.CANCELLED
    with pytest.raises(Forbidden):
        client.schedule("invoices", 1)
    with pytest.raises(Forbidden):
        client.get(id.replace("emails", "invoices"))


def test_a_producer_of_one_queue_is_no_direct_producer(service: boto3.Session) -> None:
    with pytest.raises(Forbidden, match="finding the deployment 'e2e'"):
        Client.connect("e2e", session=service, direct=True)


def test_a_deployment_that_others_own_is_not_found(service: boto3.Session) -> None:
    with pytest.raises(Forbidden, match="finding the deployment 'theirs'"):
        Client.connect("theirs", session=service)


def test_a_local_runs_door_needs_no_credentials(
    endpoints: Endpoints, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("config", "shared_credentials"):
        monkeypatch.setenv(f"AWS_{name.upper()}_FILE", str(tmp_path / name))
    with signing_proxy(endpoints.api, authority=emulator.authority) as api:
        client = Client.connect(url=api)
        assert client.cancel(client.schedule("emails", 1, delay=3600).id) is State.CANCELLED
