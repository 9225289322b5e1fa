"""A deployment in an emulator of its own, whose functions reach AWS through a proxy."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from dueline.config.deployment import Deployment as Settings
from dueline.config.deployment import load
from dueline.core import instant
from local.deploy import deploy
from local.emulator import Emulator, free_port
from local.endpoints import Endpoints, find
from local.running import fired_every
from local.signing_proxy import signing_proxy
from local.template import configure
from tests.e2e.assemblies import assembly_of
from tests.e2e.chaos.network_faults import tables_throttled
from tests.e2e.chaos.proxy import Proxy, environment, proxy, straight, uid_of
from tests.waiting import HANG_SECONDS, wait_until

QUEUES = Path(__file__).parent / "queues.yaml"
# There are eight partitions, and each tick takes CPU.
TICK_EVERY_SECONDS = 3.0
# Deployed, SQS delivers a message again 181 s after its ingest was killed: nobody would wait for that.
INBOUND_VISIBILITY_SECONDS = 8
_ON_ITS_WAY_SECONDS = 1
_COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A running deployment, the proxy of its functions, and the ticks that failed so far.

    `environment` is for functions of a team's own. The clean-up of what is started in `folder` goes on `stack`.
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
        self.proxy.records.clear()
        self.tick_faults.clear()

    def history_of(self, id: str) -> str:
        """Return the requests about a job, and the log lines of the functions."""
        requests = [str(record) for record in list(self.proxy.records) if uid_of(id) in record.uids]
        return "\n".join([f"job {id}", *(requests or ["no request was about it"]), *self.log_lines(id)])

    def queue_url(self, name: str) -> str:
        return str(self.emulator.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])

    def is_ingested(self) -> bool:
        """Return whether the inbound queue is empty, and no function works at any of its messages."""
        return not any(self._count(self.endpoints.inbound_url))

    def _count(self, url: str) -> tuple[int, int]:
        """Return how many messages of a queue are visible, and how many are not."""
        answer = self.emulator.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=_COUNTS)
        visible, hidden = (int(answer["Attributes"][count]) for count in _COUNTS)
        return visible, hidden

    def count_dead_letters(self) -> int:
        return sum(self._count(url)[0] for url in self.endpoints.dead_letter_queues.values())

    def dead_letters(self, *but: str) -> dict[str, list[dict[str, Any]]]:
        """Return what is in each dead-letter queue that holds anything, by its name; `but` are left out."""
        queues = {name: url for name, url in self.endpoints.dead_letter_queues.items() if name not in but}
        by_queue = {name: self.all_in(url) for name, url in queues.items()}
        return {name: messages for name, messages in by_queue.items() if messages}

    def all_in(self, url: str) -> list[dict[str, Any]]:
        """Return every message that a queue holds; each stays there, unseen by others for a while."""
        sqs = self.emulator.client("sqs")
        received: list[dict[str, Any]] = []
        while True:
            answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
            if "Messages" not in answer:
                return received
            received += answer["Messages"]

    def log_lines(self, text: str) -> list[str]:
        """Return the log lines of all functions that have a text in them."""
        logs = self.emulator.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        read = logs.get_paginator("filter_log_events").paginate
        pages = (page for group in groups for page in read(logGroupName=group, filterPattern=f'"{text}"'))
        return [event["message"] for page in pages for event in page["events"] if text in event["message"]]

    def wait_for_ticks(self, after: datetime, queues: Iterable[str]) -> bool:
        """Wait until every partition was read whole since: the second tick that takes the lease finds it given back."""
        partitions = [f"{name}#{n}" for name in queues for n in range(self.settings.queues[name].partitions)]
        moment = instant.text(after)

        def are_read() -> bool:
            states = [record.state for record in list(self.proxy.records) if record.state and record.had_effect]
            ticks = Counter(state.partition for state in states if state.acquires and state.now > moment)
            return all(ticks[partition] >= 2 for partition in partitions)

        return wait_until(are_read)

    def throttle_with_jobs_in_the_table(
        self, schedule: Callable[[timedelta], list[str]], *, lead: timedelta
    ) -> list[str]:
        """Have jobs in the table, none of them sent to its queue, and throttle the tables; return the jobs' ids.

        `schedule` schedules jobs that are due after `lead`; again after twice that where ticks were quicker than a slow
        machine.
        """
        while True:
            waiting = schedule(lead)
            assert wait_until(self.is_ingested), "ingest hangs"
            self.proxy.around = tables_throttled
            # What was sent before that has its answer.
            time.sleep(_ON_ITS_WAY_SECONDS)
            delivered = {uid for record in list(self.proxy.records) for uid in record.delivered}
            if not delivered & set(map(uid_of, waiting)):
                return waiting
            self.proxy.around, lead = straight, lead * 2


def attribute(message: Mapping[str, Any], name: str) -> str:
    """Return a message attribute's text, empty where there is none."""
    return str(message.get("MessageAttributes", {}).get(name, {}).get("StringValue", ""))


def reasons(dead_letters: Mapping[str, list[dict[str, Any]]]) -> str:
    """Return the reasons of dead letters, by queue, as text."""
    return json.dumps(
        {name: [attribute(each, "dueline-reason") for each in messages] for name, messages in dead_letters.items()}
    )


@contextmanager
def emulated(folder: Path) -> Iterator[tuple[Emulator, Proxy, Settings]]:
    """Deploy into an emulator while the context lasts, with a proxy between the functions and AWS; nothing ticks."""
    configured = configure(QUEUES, out=folder)
    assembly, port = assembly_of(configured, out=folder / "cdk.out"), free_port()
    with (
        proxy(f"http://127.0.0.1:{port}") as between,
        Emulator(log=folder / "log", port=port, environment=environment(between.endpoint)) as emulator,
    ):
        deploy(emulator, assembly)
        yield emulator, between, load(configured)


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Deploy and tick while the context lasts."""
    with ExitStack() as stack:
        emulator, between, settings = stack.enter_context(emulated(folder))
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
