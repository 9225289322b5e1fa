"""The synthesized template, deployed into the emulator with IAM enforced; nothing is mocked."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from dueline.config.deployment import load
from local.deploy import deploy
from local.emulator import Emulator
from local.endpoints import Endpoints, find, publish
from local.running import TICK_SECONDS
from local.signed import Signed
from local.template import configure, synthesize
from local.ticks import fired_every
from tests.e2e.emulated_iam import grant_batches_where_messages_are_granted
from tests.e2e.inbox import Inbox
from tests.e2e.newcomer import local

# schemathesis reads it, in a process of its own.
collect_ignore = ["fuzz/hooks.py"]
QUEUES = Path(__file__).parent / "queues.yaml"


@pytest.fixture(scope="session", autouse=True)
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """`make run`, begun before all other tests against the deployed template, because it takes its time."""
    process = local("run", tmp_path_factory.mktemp("demonstration"))
    yield process
    process.terminate()
    process.communicate()


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    folder = tmp_path_factory.mktemp("emulator")
    with Emulator(log=folder / "log", tls=folder) as running:
        yield running


@pytest.fixture(scope="session")
def endpoints(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    folder = tmp_path_factory.mktemp("assembly")
    configured = configure(QUEUES, out=folder)
    deployment = load(configured)
    deploy(emulator, synthesize(configured, out=folder / "cdk.out"))
    grant_batches_where_messages_are_granted(emulator)
    with fired_every(TICK_SECONDS, emulator, deployment.names.schedule_group) as faults:
        endpoints = find(emulator, deployment)
        publish(emulator, deployment, endpoints)
        yield endpoints
    assert not faults


@pytest.fixture(scope="session")
def http(emulator: Emulator, endpoints: Endpoints) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=endpoints.api, auth=Signed(), timeout=30, verify=emulator.trust()) as client:
        yield client


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
