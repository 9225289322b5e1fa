"""Who may do what, with IAM enforced."""

from collections.abc import Iterator

import httpx
import pytest

from dueline.config.names import Names
from local.emulator import ACCOUNT, Emulator
from local.endpoints import Endpoints
from local.signed import Signed

JOB = {"payload": 1, "delay": 3600}
UPLOAD = {"bytes": 5, "sha256": "0" * 64}


@pytest.fixture(scope="module")
def producer(emulator: Emulator, endpoints: Endpoints) -> Iterator[httpx.Client]:
    """A service that has the managed policy for producers of emails, and nothing else."""
    iam = emulator.client("iam")
    iam.create_user(UserName="producer")
    policy = f"arn:aws:iam::{ACCOUNT}:policy/{Names('e2e').producer_policy('emails')}"
    iam.attach_user_policy(UserName="producer", PolicyArn=policy)
    key = iam.create_access_key(UserName="producer")["AccessKey"]
    signed = Signed(key["AccessKeyId"], key["SecretAccessKey"])
    with httpx.Client(base_url=endpoints.api, auth=signed, timeout=30, verify=emulator.trust()) as client:
        yield client


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
    assert http.get(path).json()["state"] in ("accepted", "scheduled")


def test_whoever_does_not_sign_may_do_nothing(endpoints: Endpoints, emulator: Emulator) -> None:
    with httpx.Client(base_url=endpoints.api, verify=emulator.trust()) as stranger:
        assert stranger.post("/queues/emails/jobs", json=JOB).status_code == 403
