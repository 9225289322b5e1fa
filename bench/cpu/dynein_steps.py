"""The same steps in Dynein's protocol, over our ports, and sent as ours are."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import boto3

from bench.cpu.material import DEPLOYMENT, DYNEIN_ROWS, PARTITION, QUEUE
from bench.cpu.steps import Step, timed
from bench.dynein import Dynein
from bench.dynein_on_aws import dynein_on_aws
from dueline.aws import clients
from dueline.aws.transport.connections import Connections
from dueline.aws.transport.sending import OPERATIONS, send_directly
from dueline.config.names import Names
from dueline.model.job import Job
from dueline.model.message import BATCH_MESSAGES

_LONGEST = timedelta(seconds=10)
# What it asks for each job, besides what Dueline's functions do.
_ITS_OWN = {"UpdateItem", "DeleteItem", "ReceiveMessage", "DeleteMessageBatch"}


def dynein(*, batched: bool, queue_urls: str) -> Dynein:
    names = Names(DEPLOYMENT)
    return dynein_on_aws(
        _hastened("dynamodb"),
        _hastened("sqs"),
        table=names.table,
        inbound=f"{queue_urls}{names.inbound}",
        queue=f"{queue_urls}{names.queue(QUEUE.name)}",
        spread=map,
        batched=batched,
        query_limit=DYNEIN_ROWS,
    )


def _hastened(service: str) -> Any:
    make: Any = boto3.client
    client = make(service, config=clients.config(_LONGEST))
    connections = Connections(connect_seconds=1, read_seconds=5, lanes=1)
    send_directly(client, connections, operations=OPERATIONS | _ITS_OWN)
    return client


def submit(dynein: Dynein, of_table: Sequence[Job]) -> Step:
    return timed(lambda: dynein.submit(of_table), jobs=len(of_table))


def ingest(dynein: Dynein, *, count: int) -> Step:
    """Receive, store and delete: what Lambda does for ours is among it."""
    rounds = count // (BATCH_MESSAGES if dynein.batched else 1)
    return timed(_times(rounds, dynein.ingest), jobs=count)


def tick(dynein: Dynein, *, count: int) -> Step:
    """Poll pages of overdue jobs until so many are handed over."""
    return timed(_times(count // DYNEIN_ROWS, lambda: dynein.poll(PARTITION)), jobs=count)


def _times(count: int, do: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            do()

    return run
