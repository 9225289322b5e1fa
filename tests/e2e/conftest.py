"""The synthesized template, deployed into the emulator with IAM enforced; nothing is mocked."""

import os
import subprocess
from functools import partial
from pathlib import Path

import boto3
import pytest

from dueline import Client
from local.emulator import CREDENTIALS, REGION, Emulator
from tests.e2e.deployed import as_administrator, deployed_locally, signed_client
from tests.e2e.ready import typed_in
from tests.waiting import HANG_SECONDS, PATIENT, wait_until

# schemathesis reads them, in a process of its own.
collect_ignore = ["fuzz/hooks.py"]
QUEUES = Path(__file__).parent / "queues.yaml"


@pytest.fixture(scope="session")
def emulator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("emulator")
    with Emulator(log=folder / "log", tls=folder) as running:
        yield running


@pytest.fixture(scope="session")
def endpoints(emulator, tmp_path_factory):
    """Where everything is that is deployed."""
    with deployed_locally(emulator, QUEUES, folder=tmp_path_factory.mktemp("assembly")) as endpoints:
        yield endpoints


@pytest.fixture(scope="session")
def http(emulator, endpoints):
    """A client that signs."""
    with signed_client(emulator, endpoints) as http:
        yield http


@pytest.fixture
def dead_letter(emulator, endpoints):
    """Waits until a message is in a dead-letter queue; returns its body and its attributes."""

    def receive(queue):
        sqs, received = emulator.client("sqs"), []
        read = partial(sqs.receive_message, QueueUrl=endpoints.dead_letter_queues[queue], MessageAttributeNames=["All"])
        assert wait_until(lambda: bool(received.extend(read().get("Messages", [])) or received)), "there is none"
        message = received[0]
        return message["Body"], {name: each["StringValue"] for name, each in message["MessageAttributes"].items()}

    return receive


@pytest.fixture(scope="session")
def commands(tmp_path_factory):
    """The folder of the command `dueline`."""
    folder = tmp_path_factory.mktemp("commands")
    with typed_in(folder):
        yield folder


@pytest.fixture
def credentials(emulator, endpoints):
    """Let this process be an administrator of the emulator."""
    with as_administrator(emulator, endpoints.name):
        yield


@pytest.fixture
def client(credentials, endpoints):
    """A client with an administrator's credentials, whatever this process has later."""
    session = boto3.Session(region_name=REGION, **CREDENTIALS)
    return Client.connect(endpoints.name, session=session, patience=PATIENT)


@pytest.fixture
def typed(commands, tmp_path, credentials):
    """Runs a command as an administrator, with `dueline` on the PATH, in a folder; some of the environment changed."""

    def run(*command, **changes):
        path = f"{commands}:{os.environ['PATH']}"
        changed = os.environ | {"HOME": str(tmp_path), "PATH": path, "COLUMNS": "200"} | changes
        env = {name: value for name, value in changed.items() if value is not None}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG_SECONDS)

    return run


@pytest.fixture
def shell(typed):
    """Runs a script for the shell, to its end without an error; returns its stdout."""

    def run(script, **changes):
        done = typed("/bin/bash", "-euc", script, **changes)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    return run
