"""A deployment in the emulator with IAM enforced, for the tests of one process, and who uses it."""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import boto3
import httpx

from dueline import Worker
from dueline.config.deployment import load
from dueline.core import instant
from local.deploy import deploy
from local.emulator import CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints, find, publish
from local.running import fired_every
from local.template import configure
from tests.acceptance.rights import SigV4
from tests.e2e.assemblies import assembly_of
from tests.e2e.emulated_iam import grant_what_the_emulator_needs
from tests.waiting import HANG_SECONDS

# Within a lookahead of 21 s, what becomes due meets two ticks; there are up to ten partitions, and each tick costs.
TICK_EVERY_SECONDS = 9.0
# What a tick's fault says whose requests took too long: on a slow machine, no defect, and the next tick goes on.
TOO_SLOW = ("timed out", "timeout", "Timeout")
# A worker that should stop ends its poll first.
POLL_SECONDS = 1
SIGNER = SigV4(boto3.Session(region_name=REGION, **CREDENTIALS))


class RetryingTransport(httpx.HTTPTransport):
    """Repeats a request after 429 and 503, as callers must: a local AWS on a busy machine is slow."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for _ in range(30):
            response = super().handle_request(request)
            if response.status_code not in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
                break
            response.read()
            time.sleep(1)
        return response


def signed_client(emulator: Emulator, endpoints: Endpoints) -> httpx.Client:
    """Return an HTTP client of the API that signs and is patient."""
    transport = RetryingTransport(verify=emulator.trust())
    return httpx.Client(base_url=endpoints.api, auth=SIGNER, timeout=HANG_SECONDS, transport=transport)


@contextmanager
def deployed_locally(emulator: Emulator, queues: Path, *, folder: Path) -> Iterator[Endpoints]:
    """Deploy what a file of queues describes, and fire its ticks while the context is open."""
    configured = configure(queues, out=folder)
    deployment = load(configured)
    core = deployment.names.core_stack

    def grant_the_core(stack: str) -> None:
        # The queues' stacks invoke its functions.
        if stack == core:
            grant_what_the_emulator_needs(emulator)

    deploy(emulator, assembly_of(configured, out=folder / "cdk.out"), after=grant_the_core)
    grant_what_the_emulator_needs(emulator)
    endpoints = find(emulator, deployment)
    publish(emulator, deployment, endpoints)
    with signed_client(emulator, endpoints) as http:
        # A busy machine takes longer to start the API's function than callers in the tests may wait.
        http.get("/queues").raise_for_status()
    with fired_every(TICK_EVERY_SECONDS, emulator, deployment.names.schedule_group) as faults:
        yield endpoints
    assert not not_slow(faults)


def environment_of(emulator: Emulator, name: str) -> dict[str, str]:
    """Return this process's environment, with none of its own AWS settings, and an administrator's credentials."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DUELINE_"))}
    variables = {"AWS_ENDPOINT_URL": emulator.endpoint, "AWS_DEFAULT_REGION": REGION, "DUELINE_NAME": name}
    trusted = {"AWS_CA_BUNDLE": str(emulator.authority)} if emulator.authority else {}
    return surroundings | variables | trusted | {name.upper(): value for name, value in CREDENTIALS.items()}


@contextmanager
def as_administrator(emulator: Emulator, name: str) -> Iterator[None]:
    """Let this process be an administrator of a deployment in the emulator while the context is open."""
    with (
        patch.dict(os.environ, environment_of(emulator, name), clear=True),
        patch.object(boto3, "DEFAULT_SESSION", None),  # it would keep the credentials of others
    ):
        yield


@contextmanager
def working(worker: Worker) -> Iterator[None]:
    """Let a worker run in a thread while the context lasts; what it raises is raised here."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            worker.run(grace=5)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with patch("dueline.worker.receiving.LONG_POLL_SECONDS", POLL_SECONDS):
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join(HANG_SECONDS)
    assert not thread.is_alive()
    assert not raised, raised


def send_inbound(sqs: Any, url: str, *, due: datetime, body: str = "1") -> str:
    """Send a job of `emails` to the inbound queue, as submission does while the table throttles; return its id."""
    id = f"emails.0.t.{instant.epoch_ms(due)}.{uuid4()}"
    attributes = {"dueline-id": id, "dueline-expires": instant.text(due + timedelta(days=7))}
    named = {name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()}
    sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=named)
    return id


def not_slow(faults: Iterable[BaseException], *allowed: str) -> list[str]:
    """Return what failed for another reason than a machine that is too slow, or than what is allowed besides.

    >>> not_slow([RuntimeError("updating row: Read timeout on endpoint URL"), RuntimeError("no such table")])
    ['no such table']
    """
    messages = map(str, faults)
    return [fault for fault in messages if not any(reason in fault for reason in (*TOO_SLOW, *allowed))]
