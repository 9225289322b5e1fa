"""The synthesized template, deployed into the emulator with IAM enforced; nothing is mocked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from dueline.config.deployment import load
from dueline.config.names import Names
from local.deploy import deploy
from local.emulator import ACCOUNT, REGION, Emulator
from local.endpoints import Endpoints, find, publish
from local.signed import Signed
from local.template import configure
from local.ticks import fired_every, not_slow
from tests.e2e.assemblies import assembly_of
from tests.e2e.early import Job, schedule_early
from tests.e2e.emulated_iam import grant_what_the_emulator_asks_for
from tests.e2e.inbox import HANG_SECONDS, Inbox, Receive, wait_until

# schemathesis and Lambda read them, in processes of their own.
collect_ignore = ["fuzz/hooks.py", "workers/consumer.py"]
QUEUES = Path(__file__).parent / "queues.yaml"
# What is due soon is handed over whole lookaheads ahead: there are ten partitions, and each tick costs.
TICK_EVERY_SECONDS = 3.0
FirstJobs = Callable[..., dict[str, Job]]


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    folder = tmp_path_factory.mktemp("emulator")
    with Emulator(log=folder / "log", tls=folder) as running:
        yield running


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployed:
    """Where everything is, a client that signs, and the jobs that were scheduled early."""

    endpoints: Endpoints
    http: httpx.Client
    early: dict[str, Job]


@pytest.fixture(scope="session")
def queues_yaml() -> Path:
    """What is deployed; a folder with tests about other queues has a file of its own."""
    return QUEUES


@pytest.fixture(scope="session")
def first_jobs() -> FirstJobs:
    """Schedules, as soon as it is deployed, what several tests wait for at once."""
    return schedule_early


@pytest.fixture(scope="session")
def deployed(
    emulator: Emulator, tmp_path_factory: pytest.TempPathFactory, queues_yaml: Path, first_jobs: FirstJobs
) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("assembly")
    configured = configure(queues_yaml, out=folder)
    deployment = load(configured)
    core = deployment.names.core_stack

    def grant_the_core(stack: str) -> None:
        # The queues' stacks invoke its functions.
        if stack == core:
            grant_what_the_emulator_asks_for(emulator)

    deploy(emulator, assembly_of(configured, out=folder / "cdk.out"), after=grant_the_core)
    grant_what_the_emulator_asks_for(emulator)
    with fired_every(TICK_EVERY_SECONDS, emulator, deployment.names.schedule_group) as faults:
        endpoints = find(emulator, deployment)
        publish(emulator, deployment, endpoints)
        with httpx.Client(base_url=endpoints.api, auth=Signed(), timeout=HANG_SECONDS, verify=emulator.trust()) as http:
            yield Deployed(endpoints=endpoints, http=http, early=first_jobs(http, verify=emulator.trust()))
    assert not not_slow(faults)


@pytest.fixture(scope="session")
def endpoints(deployed: Deployed) -> Endpoints:
    return deployed.endpoints


@pytest.fixture(scope="session")
def http(deployed: Deployed) -> httpx.Client:
    return deployed.http


@pytest.fixture(scope="session")
def early(deployed: Deployed) -> dict[str, Job]:
    return deployed.early


@pytest.fixture
def inbox(emulator: Emulator, endpoints: Endpoints) -> Iterator[Callable[[str], Inbox]]:
    """Opens the inbox of a queue: all that arrives there from then on."""
    opened: list[Inbox] = []

    def open_inbox(queue: str) -> Inbox:
        opened.append(Inbox(emulator, endpoints.queues[queue]))
        return opened[-1]

    yield open_inbox
    for each in opened:
        each.close()


@pytest.fixture(scope="session")
def worker(emulator: Emulator) -> Iterator[Callable[[str], Any]]:
    """Clients of a worker that has the managed policy for consumers of archive, and nothing else."""
    iam = emulator.client("iam")
    policy = f"arn:aws:iam::{ACCOUNT}:policy/{Names('e2e').consumer_policy('archive')}"
    iam.create_user(UserName="reader")
    iam.attach_user_policy(UserName="reader", PolicyArn=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    session = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)
    yield lambda service: session.client(service, endpoint_url=emulator.endpoint, verify=str(emulator.authority))
    iam.delete_access_key(UserName="reader", AccessKeyId=key["AccessKeyId"])
    iam.detach_user_policy(UserName="reader", PolicyArn=policy)
    iam.delete_user(UserName="reader")


@pytest.fixture(scope="session")
def receive(worker: Callable[[str], Any], endpoints: Endpoints) -> Receive:
    """Wait for the message of a job of archive, as a plain consumer does."""
    sqs, url, received = worker("sqs"), endpoints.queues["archive"], dict[str, dict[str, Any]]()

    def has_come(id: str) -> bool:
        answer = sqs.receive_message(
            QueueUrl=url, WaitTimeSeconds=1, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        for message in answer.get("Messages", []):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            # A test of rights sends what is no job.
            if attributes := message.get("MessageAttributes"):
                received[attributes["dueline-id"]["StringValue"]] = message
        return id in received

    def wait(id: str) -> dict[str, Any]:
        assert wait_until(lambda: has_come(id)), f"{id} did not come"
        return received[id]

    return wait
