"""A deployment in an emulator of its own, whose functions reach AWS through a proxy."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from dueline.config.deployment import Deployment as Settings
from dueline.config.deployment import load
from dueline.core.queue_settings import PLANNER
from local.deploy import deploy
from local.emulator import Emulator, free_port
from local.endpoints import Endpoints, find
from local.running import fired_every
from local.signing_proxy import signing_proxy
from local.template import configure
from tests.e2e.assemblies import assembly_of
from tests.e2e.chaos.proxy import Proxy, environment, proxy, straight, uid_of
from tests.waiting import HANG_SECONDS, wait_until

QUEUES = Path(__file__).parent / "queues.yaml"
# There are six partitions, and each tick takes CPU.
TICK_EVERY_SECONDS = 4.0
# Deployed, SQS delivers a message again 181 s after its ingest was killed: nobody would wait for that.
INBOUND_VISIBILITY_SECONDS = 8
SETTLES = timedelta(seconds=2 * TICK_EVERY_SECONDS)
_COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A running deployment, the proxy of its functions, and the ticks that failed so far.

    The clean-up of what is started in `folder` goes on `stack`.
    """

    emulator: Emulator
    endpoints: Endpoints
    settings: Settings
    proxy: Proxy
    http: httpx.Client
    tick_faults: list[BaseException]
    folder: Path
    stack: ExitStack

    def start(self) -> None:
        """Forget what earlier scenarios did."""
        self.proxy.around = straight
        self.proxy.exchanges.clear()
        self.tick_faults.clear()

    def history_of(self, id: str) -> str:
        """Return the requests about a job, and the log lines of the functions."""
        requests = [str(each) for each in list(self.proxy.exchanges) if uid_of(id).encode() in each.body]
        return "\n".join([f"job {id}", *(requests or ["no request was about it"]), *self.log_lines(id)])

    def queue_url(self, name: str) -> str:
        return str(self.emulator.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])

    def is_ingested(self) -> bool:
        """Return whether the inbound queue is empty, and no function works at any of its messages."""
        sqs, url = self.emulator.client("sqs"), self.endpoints.inbound_url
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_COUNTS)["Attributes"]
        return not any(int(counts[count]) for count in _COUNTS)

    def dead_letters(self) -> list[dict[str, str]]:
        """Return the attributes of what is in the dead-letter queues; it stays there, unseen by others for a while."""
        sqs, of_planner = self.emulator.client("sqs"), self.settings.names.queue_dlq(PLANNER.name)
        urls = {*self.endpoints.dead_letter_queues.values(), self.queue_url(of_planner)}
        return [_attributes(each) for url in urls for each in _all_in(sqs, url)]

    def log_lines(self, text: str) -> list[str]:
        """Return the log lines of all functions that have a text in them."""
        logs = self.emulator.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        read = logs.get_paginator("filter_log_events").paginate
        pages = (page for group in groups for page in read(logGroupName=group, filterPattern=f'"{text}"'))
        return [event["message"] for page in pages for event in page["events"] if text in event["message"]]

    def wait_for_ticks(self, after: datetime, queues: Iterable[str]) -> bool:
        """Wait until every partition was read since, and what was sent then had time to come."""

        def are_read() -> bool:
            now = datetime.now(UTC)
            ages = [self.http.get(f"/queues/{queue}").json()["fence_age"] for queue in queues]
            return all(age is not None and now - timedelta(seconds=age) > after + SETTLES for age in ages)

        return wait_until(are_read)


def _all_in(sqs: Any, url: str) -> Iterator[Any]:
    read = partial(sqs.receive_message, QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    while messages := read().get("Messages"):
        yield from messages


def _attributes(message: Any) -> dict[str, str]:
    return {name: str(value.get("StringValue")) for name, value in message.get("MessageAttributes", {}).items()}


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Deploy into an emulator and tick while the context lasts, with a proxy between the functions and AWS."""
    configured = configure(QUEUES, out=folder)
    assembly, settings, port = assembly_of(configured, out=folder / "cdk.out"), load(configured), free_port()
    with ExitStack() as stack:
        between = stack.enter_context(proxy(f"http://127.0.0.1:{port}"))
        reached = environment(between.endpoint)
        emulator = stack.enter_context(Emulator(log=folder / "log", port=port, environment=reached))
        deploy(emulator, assembly)
        endpoints = find(emulator, settings)
        endpoints = replace(endpoints, api=stack.enter_context(signing_proxy(endpoints.api)))
        visibility = {"VisibilityTimeout": str(INBOUND_VISIBILITY_SECONDS)}
        emulator.client("sqs").set_queue_attributes(QueueUrl=endpoints.inbound_url, Attributes=visibility)
        faults = stack.enter_context(fired_every(TICK_EVERY_SECONDS, emulator, settings.names.schedule_group))
        http = stack.enter_context(httpx.Client(base_url=endpoints.api, timeout=HANG_SECONDS))
        # Starts the function's first process.
        http.get(f"/queues/{next(iter(endpoints.queues))}/jobs/none")
        yield Deployment(
            emulator=emulator,
            endpoints=endpoints,
            settings=settings,
            proxy=between,
            http=http,
            tick_faults=faults,
            folder=folder,
            stack=stack,
        )
