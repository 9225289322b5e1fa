"""A deployment in the emulator with IAM enforced, for the tests of one process."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import httpx

from dueline.config.deployment import load
from local.deploy import deploy
from local.emulator import CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints, find, publish
from local.running import fired_every
from local.template import configure
from tests.acceptance.rights import SigV4
from tests.e2e.assemblies import assembly_of
from tests.e2e.emulated_iam import grant_what_the_emulator_needs
from tests.retrying_http import RetryingTransport
from tests.waiting import HANG_SECONDS

# Within a lookahead of 21 s, what becomes due meets two ticks; there are six partitions, and each tick costs.
TICK_EVERY_SECONDS = 9.0
# What a tick's fault says whose requests took too long: on a slow machine, no defect, and the next tick goes on.
TOO_SLOW = ("timed out", "timeout", "Timeout")
SIGNER = SigV4(boto3.Session(region_name=REGION, **CREDENTIALS))


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


def not_slow(faults: Iterable[BaseException], *allowed: str) -> list[str]:
    """Return what failed for another reason than a machine that is too slow, or than what is allowed besides.

    >>> not_slow([RuntimeError("updating row: Read timeout on endpoint URL"), RuntimeError("no such table")])
    ['no such table']
    """
    messages = map(str, faults)
    return [fault for fault in messages if not any(reason in fault for reason in (*TOO_SLOW, *allowed))]
