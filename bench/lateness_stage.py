"""The deployed template in the local AWS, a proxy between its functions and AWS, and ticks that fire in real time."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from bench.harness import aws_environment
from bench.load import EXACT, PLAIN, RECORD
from dueline import Client
from dueline.aws.sqs import SqsQueue
from dueline.config.deployment import Deployment, load
from local.deploy import deploy
from local.emulator import Emulator, free_port
from local.endpoints import Endpoints, find
from local.signing_proxy import signing_proxy
from local.template import configure, synthesize
from tests.e2e.chaos.proxy import Answer, Exchange, Proxy, environment, proxy, straight

# AWS's periods, four times as fast: the lookahead is four periods. A lease has 12 s at least.
PERIOD, LOOKAHEAD = 15, 60
PERIODS = {"tick_period": PERIOD, "lookahead": LOOKAHEAD, "lease": 12, "direct_horizon": 75, "local_run": True}
QUEUES: dict[str, Any] = {"name": "lateness", "queues": {**dict.fromkeys(PLAIN), EXACT: {"precise": True}}}
KILLED_QUEUE = PLAIN[0]
# Of the inbound queue: deployed it is 181 s, and a run would wait for that where the emulator loses an ingest.
_AGAIN_AFTER_SECONDS = 15
_MOST_AT_ONCE = 32
_NOBODYS_PARTITION = 998


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A running deployment. `proxy` passes on its functions' requests to AWS, not those of consumers and workers."""

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
        return {**aws_environment(self.emulator.endpoint), RECORD: str(record)}


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Deploy while the context lasts; nothing ticks yet."""
    queues, periods = folder / "queues-of-bench.yaml", folder / "periods.yaml"
    queues.write_text(yaml.safe_dump(QUEUES))
    periods.write_text(yaml.safe_dump(PERIODS))
    configured = configure(queues, out=folder, periods=periods)
    deployment, assembly = load(configured), synthesize(configured, out=folder / "cdk.out")
    with ExitStack() as stack:
        port = free_port()
        between = stack.enter_context(proxy(f"http://127.0.0.1:{port}"))
        emulator = Emulator(log=folder / "log", port=port, environment=environment(between.endpoint))
        deploy(stack.enter_context(emulator), assembly)
        endpoints = find(emulator, deployment)
        endpoints = replace(endpoints, api=stack.enter_context(signing_proxy(endpoints.api)))
        visibility = {"VisibilityTimeout": str(_AGAIN_AFTER_SECONDS)}
        emulator.client("sqs").set_queue_attributes(QueueUrl=endpoints.inbound_url, Attributes=visibility)
        client = Client.connect(deployment.name, url=endpoints.api)
        yield Stage(
            emulator=emulator,
            endpoints=endpoints,
            deployment=deployment,
            client=client,
            proxy=between,
            folder=folder,
        )


class Kill:
    """Kills -9 the process of a tick of a queue that has begun to send: its first request takes effect, unanswered."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._lock = threading.Lock()
        self.at = 0.0

    def __call__(self, exchange: Exchange) -> Answer | None:
        answer = exchange.pass_on()
        sender = exchange.sender
        is_send = sender.function == "tick" and exchange.operation == "SendMessageBatch"
        if not is_send or exchange.record().queue != self._queue:
            return answer
        with self._lock:
            if self.at:
                return answer
            self.at = time.time()
            sender.kill()
        return None


@contextmanager
def ticking(stage: Stage, *, begin: float, missed: int, killed: int) -> Iterator[Kill]:
    """Fire every schedule of the deployment each period from `begin` (since 1970) on, but for the firing `missed`."""
    kill, stop = Kill(stage.deployment.names.queue(KILLED_QUEUE)), threading.Event()
    targets, functions = _targets(stage), stage.emulator.client("lambda")

    def fire() -> None:
        with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
            for firing in itertools.count():
                if stop.wait(max(0.0, begin + firing * PERIOD - time.time())):
                    return
                if firing == killed:
                    stage.proxy.around = kill
                for target in targets if firing != missed else ():
                    pool.submit(functions.invoke, FunctionName=target["Arn"], Payload=target["Input"].encode())

    thread = threading.Thread(target=fire, daemon=True)
    thread.start()
    try:
        yield kill
    finally:
        stop.set()
        thread.join()
        stage.proxy.around = straight


def warm_ticks(stage: Stage) -> None:
    """Tick a partition that nobody has, once for each schedule at once: cold starts are not what is measured."""
    targets, functions = _targets(stage), stage.emulator.client("lambda")
    event = json.dumps({"queue": KILLED_QUEUE, "partition": _NOBODYS_PARTITION}).encode()
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        list(pool.map(lambda target: functions.invoke(FunctionName=target["Arn"], Payload=event), targets))


def _targets(stage: Stage) -> list[dict[str, Any]]:
    scheduler, group = stage.emulator.client("scheduler"), stage.deployment.names.schedule_group
    names = [schedule["Name"] for schedule in scheduler.list_schedules(GroupName=group)["Schedules"]]
    return [scheduler.get_schedule(GroupName=group, Name=name)["Target"] for name in names]
