"""Who may do what, with IAM enforced."""

import json
from collections.abc import Iterator

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError

from dueline import Client, Control, Forbidden, Rate
from dueline.config.names import Names
from dueline.model.queue_settings import PLANNER
from local.emulator import REGION, Emulator
from local.endpoints import Endpoints
from local.signed import Signed
from tests.e2e.inbox import HANG_SECONDS
from tests.e2e.users import key_of

JOB = {"payload": 1, "delay": 3600}
UPLOAD = {"bytes": 5, "sha256": "0" * 64}


@pytest.fixture(scope="module")
def producer(emulator: Emulator, endpoints: Endpoints) -> Iterator[httpx.Client]:
    """A service that has the managed policy for producers of emails, and nothing else."""
    signed = Signed(*key_of("producer", Names("e2e").producer_policy("emails"), emulator))
    with httpx.Client(base_url=endpoints.api, auth=signed, timeout=HANG_SECONDS, verify=emulator.trust()) as client:
        yield client


@pytest.fixture(scope="module")
def operator(emulator: Emulator, endpoints: Endpoints) -> boto3.Session:
    """The credentials of someone who has the managed policy for operators of emails, and nothing else."""
    return boto3.Session(*key_of("operator", Names("e2e").operator_policy("emails"), emulator), region_name=REGION)


def test_a_producer_may_schedule_look_up_and_cancel_in_its_queue(producer: httpx.Client) -> None:
    answer = producer.post("/queues/emails/jobs", json=JOB)
    assert answer.status_code == 201
    path = f"/queues/emails/jobs/{answer.json()['id']}"
    assert producer.get(path).status_code == 200
    assert producer.delete(path).status_code == 200


def test_a_producer_may_list_cancel_many_upload_and_ask_for_its_queue_and_for_the_names_of_all(
    producer: httpx.Client,
) -> None:
    id = producer.post("/queues/emails/jobs", json=JOB).json()["id"]
    assert producer.get("/queues/emails/jobs").status_code == 200
    assert producer.post("/queues/emails/cancellations", json={"ids": [id]}).status_code == 200
    assert producer.post("/queues/emails/uploads", json=UPLOAD).status_code == 201
    assert producer.get("/queues/emails").status_code == 200
    assert producer.get("/queues").status_code == 200


def test_a_producer_may_make_and_stop_the_schedules_of_its_queue_and_ask_what_a_rule_means(
    producer: httpx.Client,
) -> None:
    path = "/queues/emails/schedules/of-a-producer"
    assert producer.put(path, json={"cron": "0 0 1 1 *"}).status_code == 201
    assert producer.post(f"{path}/pause").status_code == 200
    assert producer.get(path).json()["paused"] is True
    assert producer.delete(path).status_code == 200
    assert producer.post("/schedules/preview", json={"every": 60}).status_code == 200


def test_nobody_may_send_planning_jobs_not_even_who_may_send_to_any_queue(
    emulator: Emulator, endpoints: Endpoints
) -> None:
    iam, key = emulator.client("iam"), key_of("sender", Names("e2e").producer_policy("emails"), emulator)
    document = {"Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}], "Version": "2012-10-17"}
    iam.put_user_policy(UserName="sender", PolicyName="all", PolicyDocument=json.dumps(document))
    session = boto3.Session(*key, region_name=REGION)
    sqs = session.client("sqs", endpoint_url=emulator.endpoint, verify=str(emulator.authority))
    sqs.send_message(QueueUrl=endpoints.queues["archive"], MessageBody="no job")
    planner = endpoints.queues["archive"].replace("e2e_archive", Names("e2e").queue(PLANNER.name))
    with pytest.raises(ClientError, match="AccessDenied"):
        sqs.send_message(QueueUrl=planner, MessageBody="no job")


def test_a_producer_may_do_nothing_in_another_queue(producer: httpx.Client, http: httpx.Client) -> None:
    path = f"/queues/invoices/jobs/{http.post('/queues/invoices/jobs', json=JOB).json()['id']}"
    assert producer.post("/queues/invoices/jobs", json=JOB).status_code == 403
    assert producer.get(path).status_code == 403
    assert producer.delete(path).status_code == 403
    assert producer.patch(path, json={"delay": 9}).status_code == 403
    assert producer.get("/queues/invoices/jobs").status_code == 403
    assert producer.post("/queues/invoices/cancellations", json={"ids": [path.split("/")[-1]]}).status_code == 403
    assert producer.post("/queues/invoices/uploads", json=UPLOAD).status_code == 403
    assert producer.get("/queues/invoices").status_code == 403
    assert producer.put("/queues/invoices/schedules/s", json={"every": 60}).status_code == 403
    assert producer.get("/queues/invoices/schedules").status_code == 403
    assert http.get(path).json()["state"] in ("accepted", "scheduled")


@pytest.mark.parametrize(("method", "path"), [("POST", "pause"), ("POST", "resume"), ("PUT", "rate")])
def test_a_producer_may_not_control_even_its_own_queue(producer: httpx.Client, method: str, path: str) -> None:
    before = producer.get("/queues/emails").json()
    assert producer.request(method, f"/queues/emails/{path}", json={"rate": "0/s"}).status_code == 403
    told = producer.get("/queues/emails").json()
    assert (told["paused"], told["rate"]) == (before["paused"], before["rate"])


@pytest.fixture
def controlling(
    monkeypatch: pytest.MonkeyPatch, emulator: Emulator, endpoints: Endpoints, operator: boto3.Session
) -> Iterator[Client]:
    """An operator's client, which finds the API by itself, while its queue is let go before and after."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(emulator.authority))
    client = Client.connect("e2e", session=operator)
    _let_go(client)
    yield client
    _let_go(client)


def _let_go(client: Client) -> None:
    client.resume("emails")
    client.set_rate("emails", None)


def test_an_operator_may_pause_resume_and_limit_its_own_queue_and_see_it(
    controlling: Client, http: httpx.Client
) -> None:
    assert controlling.pause("emails") == Control(paused=True)
    assert controlling.set_rate("emails", "50/s") == Control(paused=True, rate=Rate(jobs=50))
    assert controlling.queue("emails").control == Control(paused=True, rate=Rate(jobs=50))
    assert http.get("/queues/emails").json()["rate"] == "50/s"
    assert controlling.resume("emails") == Control(rate=Rate(jobs=50))
    assert controlling.set_rate("emails", None) == Control()
    assert "emails" in {queue.name for queue in controlling.queues()}


def test_an_operator_may_neither_control_another_queue_nor_schedule(controlling: Client) -> None:
    for ask in (
        lambda: controlling.pause("invoices"),
        lambda: controlling.resume("invoices"),
        lambda: controlling.set_rate("invoices", "0/s"),
        lambda: controlling.queue("invoices"),
        lambda: controlling.schedule("emails", 1),
    ):
        with pytest.raises(Forbidden):
            ask()


def test_whoever_does_not_sign_may_do_nothing(endpoints: Endpoints, emulator: Emulator) -> None:
    with httpx.Client(base_url=endpoints.api, timeout=HANG_SECONDS, verify=emulator.trust()) as stranger:
        assert stranger.post("/queues/emails/jobs", json=JOB).status_code == 403
        assert stranger.post("/queues/emails/pause").status_code == 403
