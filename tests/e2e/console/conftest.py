"""`dueline console`, started as its user starts it, over a deployment of its own, and a browser before it."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from selenium import webdriver

from dueline import Client
from local.emulator import CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints
from local.template import ROOT
from tests.e2e.conftest import FirstJobs
from tests.e2e.console.chromium import chromium, skip_without_chromium
from tests.e2e.console.page import Page
from tests.e2e.environment import environment_of
from tests.e2e.newcomer import at_a_terminal
from tests.waiting import HANG_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A console that runs: the URL of its page, and its token."""

    url: str
    token: str


@contextmanager
def serving(env: Mapping[str, str], *options: str) -> Iterator[Served]:
    """Run `dueline console` while the context is open; Ctrl-C ends it in order."""
    typed = [sys.executable, "-m", "dueline", "console", "--no-browser", "--port", "0", *options]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(typed, cwd=ROOT, env=dict(env), preexec_fn=at_a_terminal, **pipe)  # type: ignore[call-overload]
    try:
        told = next((line for line in process.stdout if "#token=" in line), "nothing")
        url, _, token = next(word for word in told.split() if "#token=" in word).partition("/#token=")
        yield Served(url=url, token=token)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0, rest
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session", autouse=True)
def _needs_chromium() -> None:
    skip_without_chromium()


@pytest.fixture(scope="session")
def queues_yaml() -> Path:
    return Path(__file__).parent / "queues.yaml"


@pytest.fixture(scope="session")
def first_jobs() -> FirstJobs:
    return lambda *_, **__: {}


@pytest.fixture(scope="session")
def browser(_needs_chromium: None) -> Iterator[webdriver.Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="session")
def served(emulator: Emulator, endpoints: Endpoints) -> Iterator[Served]:
    with serving(environment_of(emulator, endpoints.name)) as served:
        yield served


@pytest.fixture
def page(browser: webdriver.Chrome, served: Served) -> Page:
    return Page(browser, url=served.url, token=served.token)


@pytest.fixture(scope="session")
def client(emulator: Emulator, endpoints: Endpoints) -> Iterator[Client]:
    """The client of a team that schedules jobs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
        patch.setenv("AWS_CA_BUNDLE", str(emulator.authority))
        yield Client.connect(endpoints.name, session=boto3.Session(region_name=REGION, **CREDENTIALS))


Letter = Callable[..., None]


@pytest.fixture
def letter(emulator: Emulator, endpoints: Endpoints) -> Letter:
    """Puts a job into a queue's dead-letter queue, as a worker does that has given it up."""
    sqs = emulator.client("sqs")

    def put(queue: str, id: str, payload: str, *, error: str, reason: str) -> None:
        told = {"dueline-id": id, "dueline-due": "2026-11-21T07:05:00.000Z", "dueline-error": error}
        told |= {"dueline-reason": reason, "dueline-attempts": "10"}
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}
        url = endpoints.dead_letter_queues[queue]
        sqs.send_message(QueueUrl=url, MessageBody=payload, MessageAttributes=attributes)

    return put
