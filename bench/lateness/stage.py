"""The deployed template in the local AWS, a proxy between its functions and AWS, and the processes that consume."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.lateness.processes import of_aws
from bench.lateness.record import PLACE
from dueline import Client
from dueline.aws.sqs.queue import SqsQueue
from dueline.config.deployment import Deployment, load
from local.deploy import deploy
from local.emulator import Emulator, free_port
from local.endpoints import Endpoints, find
from local.signing_proxy import signing_proxy
from local.template import configure, synthesize
from tests.e2e.faults.processes import environment
from tests.e2e.faults.proxy import Proxy, proxy

HERE = Path(__file__).parent
QUEUES = HERE / "queues.yaml"
# Of the inbound queue: deployed it is 181 s, and a run would wait for that where the emulator loses an ingest.
AGAIN_AFTER_SECONDS = 15
PERIODS = HERE / "periods.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A running deployment. `proxy` sees what its functions ask of AWS; consumers and workers do not go through it."""

    emulator: Emulator
    endpoints: Endpoints
    deployment: Deployment
    client: Client
    proxy: Proxy
    folder: Path

    def queue(self, url: str) -> SqsQueue:
        return SqsQueue(self.emulator.client("sqs"), url)

    def environment(self, record: Path) -> dict[str, str]:
        """Return what a consumer's process needs to find AWS and the record."""
        return {**of_aws(self.emulator.endpoint), PLACE: str(record)}


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Deploy while the context lasts; nothing ticks yet."""
    configured = configure(QUEUES, out=folder, periods=PERIODS)
    deployment, assembly = load(configured), synthesize(configured, out=folder / "cdk.out")
    with ExitStack() as stack:
        port = free_port()
        stand = stack.enter_context(proxy(f"http://127.0.0.1:{port}"))
        emulator = Emulator(log=folder / "log", port=port, environment=environment(stand.endpoint))
        deploy(stack.enter_context(emulator), assembly)
        endpoints = find(emulator, deployment)
        endpoints = replace(endpoints, api=stack.enter_context(signing_proxy(endpoints.api)))
        _take_again_soon(emulator, endpoints)
        yield Stage(
            emulator=emulator,
            endpoints=endpoints,
            deployment=deployment,
            client=Client.connect(deployment.name, url=endpoints.api),
            proxy=stand,
            folder=folder,
        )


def _take_again_soon(emulator: Emulator, endpoints: Endpoints) -> None:
    attributes = {"VisibilityTimeout": str(AGAIN_AFTER_SECONDS)}
    emulator.client("sqs").set_queue_attributes(QueueUrl=endpoints.inbound_url, Attributes=attributes)
