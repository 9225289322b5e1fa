"""A deployment of its own in an emulator of its own, whose functions reach AWS through a proxy."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import httpx

from dueline.config.deployment import Deployment, load
from dueline.model import instant
from local.deploy import deploy
from local.emulator import Emulator, free_port
from local.endpoints import Endpoints, find
from local.signing_proxy import signing_proxy
from local.template import configure
from local.ticks import fired_every
from tests.e2e.assemblies import assembly_of
from tests.e2e.faults.exchange import uid_of
from tests.e2e.faults.processes import environment
from tests.e2e.faults.proxy import Proxy, proxy
from tests.e2e.inbox import HANG_SECONDS, wait_until

QUEUES = Path(__file__).parent / "queues.yaml"
TICK_EVERY_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Play:
    """What is deployed: the settings and the synthesized stacks."""

    deployment: Deployment
    assembly: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A running deployment, the proxy of its functions, and the ticks that failed so far."""

    emulator: Emulator
    endpoints: Endpoints
    deployment: Deployment
    proxy: Proxy
    http: httpx.Client
    tick_faults: list[BaseException]

    def story_of(self, id: str) -> str:
        """Tell what befell a job: the requests that concerned it, and the log lines of the functions about it."""
        requests = "\n".join(map(str, self.proxy.of_job(uid_of(id)))) or "no request concerned it"
        return f"job {id}\n{requests}\n" + "\n".join(self.log_lines(id))

    def partitions(self) -> list[str]:
        """Return the partition keys of all queues."""
        return [f"{name}#{n}" for name, queue in self.deployment.queues.items() for n in range(queue.partitions)]

    def ticks_since(self, after: datetime) -> Counter[str]:
        """Return how many ticks of each partition have taken the lease since, by its key."""
        moment = instant.text(after)
        changes = (record.state for record in list(self.proxy.records) if record.state and record.had_effect)
        return Counter(change.partition for change in changes if change.is_take and change.now > moment)

    def let_ticks_pass(self, after: datetime) -> bool:
        """Wait until every partition was read whole since: the second tick that takes the lease finds it given back."""
        return wait_until(lambda: all(self.ticks_since(after)[each] >= 2 for each in self.partitions()))

    def log_lines(self, mark: str) -> list[str]:
        """Return the log lines of all functions that have a mark in them."""
        logs = self.emulator.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        pages = (
            page
            for group in groups
            for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group, filterPattern=f'"{mark}"')
        )
        return [event["message"] for page in pages for event in page["events"] if mark in event["message"]]


def rehearse(folder: Path, *, queues: Path = QUEUES) -> Play:
    """Synthesize a deployment with the periods of a local run."""
    configured = configure(queues, out=folder)
    return Play(deployment=load(configured), assembly=assembly_of(configured, out=folder / "cdk.out"))


@contextmanager
def staged(play: Play, *, folder: Path, again_after: int) -> Iterator[Stage]:
    """Deploy and tick while the context lasts.

    `again_after` is the visibility timeout of the inbound queue in seconds: with the deployed one of minutes, nobody
    would live to see ingest get a message again.
    """
    with ExitStack() as stack:
        port = free_port()
        stand = stack.enter_context(proxy(f"http://127.0.0.1:{port}"))
        emulator = stack.enter_context(Emulator(log=folder / "log", port=port, environment=environment(stand.endpoint)))
        deploy(emulator, play.assembly)
        endpoints = find(emulator, play.deployment)
        endpoints = replace(endpoints, api=stack.enter_context(signing_proxy(endpoints.api)))
        emulator.client("sqs").set_queue_attributes(
            QueueUrl=endpoints.inbound_url, Attributes={"VisibilityTimeout": str(again_after)}
        )
        faults = stack.enter_context(fired_every(TICK_EVERY_SECONDS, emulator, play.deployment.names.schedule_group))
        http = stack.enter_context(httpx.Client(base_url=endpoints.api, timeout=HANG_SECONDS))
        # The function's cold start is over before anything is measured.
        http.get(f"/queues/{next(iter(endpoints.queues))}/jobs/none")
        yield Stage(
            emulator=emulator,
            endpoints=endpoints,
            deployment=play.deployment,
            proxy=stand,
            http=http,
            tick_faults=faults,
        )


class Deployed(Protocol):
    """Where a deployment is reached."""

    emulator: Emulator
    endpoints: Endpoints


def is_ingested(stage: Deployed) -> bool:
    """Tell whether the inbound queue is empty, and nothing of it in a function's hands."""
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    answer = stage.emulator.client("sqs").get_queue_attributes(
        QueueUrl=stage.endpoints.inbound_url, AttributeNames=list(counts)
    )
    return all(answer["Attributes"][count] == "0" for count in counts)


def dead_letters(stage: Stage) -> dict[str, list[dict[str, Any]]]:
    """Return what is in each dead-letter queue that holds anything, by its name."""
    found = {name: all_in(stage.emulator, url) for name, url in stage.endpoints.dead_letter_queues.items()}
    return {name: messages for name, messages in found.items() if messages}


def reason_of(message: dict[str, Any]) -> str:
    return str(message.get("MessageAttributes", {}).get("dueline-reason", {}).get("StringValue", ""))


def described(letters: dict[str, list[dict[str, Any]]]) -> str:
    return json.dumps({name: list(map(reason_of, messages)) for name, messages in letters.items()}, indent=1)


def all_in(emulator: Emulator, url: str) -> list[dict[str, Any]]:
    """Return every message that a queue holds; each stays there, unseen by others for a while."""
    sqs = emulator.client("sqs")
    found: list[dict[str, Any]] = []
    while True:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        if "Messages" not in answer:
            return found
        found += answer["Messages"]
