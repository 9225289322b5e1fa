"""The synthesized template, deployed into the emulator with IAM enforced; nothing is mocked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from tests.e2e.early import Job, schedule_early
from tests.e2e.emulated_iam import grant_what_the_emulator_asks_for
from tests.e2e.inbox import Inbox

# schemathesis reads it, in a process of its own.
collect_ignore = ["fuzz/hooks.py"]
QUEUES = Path(__file__).parent / "queues.yaml"


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
def deployed(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("assembly")
    configured = configure(QUEUES, out=folder)
    deployment = load(configured)
    deploy(emulator, synthesize(configured, out=folder / "cdk.out"))
    grant_what_the_emulator_asks_for(emulator)
    with fired_every(TICK_SECONDS, emulator, deployment.names.schedule_group) as faults:
        endpoints = find(emulator, deployment)
        publish(emulator, deployment, endpoints)
        with httpx.Client(base_url=endpoints.api, auth=Signed(), timeout=30, verify=emulator.trust()) as http:
            yield Deployed(endpoints=endpoints, http=http, early=schedule_early(http, verify=emulator.trust()))
    assert not faults


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
