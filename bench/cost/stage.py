"""What is counted on: SQS in an emulator, DynamoDB in dynalite, whose units are AWS's, and the real adapters over them.

What answers does not matter to a count of requests; the units do.
"""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import timedelta
from functools import cached_property
from itertools import count
from typing import Any

import boto3

from bench.cost.lambdas import Lambdas
from bench.cost.meter import Meter
from bench.cost.payloads import PARTITIONS, QUEUE, RETENTION
from bench.dynein import Dynein
from bench.dynein_table import DynamoClaims
from dueline import Client
from dueline.aws import clients
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.sqs.inbox import SqsInbox
from dueline.aws.sqs.queue import SqsQueue
from dueline.clock import SystemClock
from dueline.config import registry
from dueline.config.names import Names
from dueline.config.registry import Registry
from dueline.config.settings import ApiSettings
from dueline.model.job import Partition
from dueline.model.queue_settings import QueueSettings

LONGEST = timedelta(seconds=10)


class Stage:
    """A deployment of one queue, at the endpoints that the environment names. `out` is where functions write."""

    def __init__(self, out: io.StringIO) -> None:
        boto3.setup_default_session()
        self.meter = Meter(boto3.DEFAULT_SESSION)
        self.names = Names("dueline")
        self.settings = QueueSettings(name=QUEUE, partitions=PARTITIONS, retention=RETENTION)
        self._numbers = count()
        self.dynamodb = clients.dynamodb(longest=LONGEST)
        self.sqs = clients.sqs(longest=LONGEST)
        self.url = self._queue(self.names.queue(QUEUE))
        self._queue(self.names.inbound)
        self._create_table(self.names.table)
        queues = Registry({QUEUE: self.settings})
        prefix = self.url.rpartition("/")[0] + "/"
        self._publish(prefix)
        self.lambdas = Lambdas(queues, deployment=self.names.deployment, queue_urls=prefix, out=out)
        self.table = DynamoTable(self.dynamodb, self.names.table)

    @cached_property
    def client(self) -> Client:
        return Client.connect(self.names.deployment, session=boto3.DEFAULT_SESSION, direct=True)

    def partition(self) -> Partition:
        """Return a partition in which nothing has happened yet."""
        return Partition(queue=QUEUE, number=next(self._numbers))

    def dynein(self, *, batched: bool) -> Dynein:
        """Return Dynein with queues and a table of its own."""
        name = f"dynein-{next(self._numbers)}"
        self._create_table(name)
        inbound = self._queue(f"{name}-inbound")
        return Dynein(
            table=DynamoTable(self.dynamodb, name),
            claims=DynamoClaims(self.dynamodb, name),
            inbound=SqsQueue(self.sqs, inbound),
            inbox=SqsInbox(self.sqs, inbound, patient=self.sqs),
            queue=SqsQueue(self.sqs, self._queue(f"{name}-out")),
            clock=SystemClock(),
            spread=ThreadPoolExecutor(clients.LANES).map,
            batched=batched,
        )

    def _queue(self, name: str) -> str:
        return self.sqs.create_queue(QueueName=name)["QueueUrl"]

    def _create_table(self, name: str) -> None:
        keys: Any = (("pk", "HASH"), ("sk", "RANGE"))
        self.dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": key, "KeyType": type} for key, type in keys],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
        )
        at_once: Any = {"Delay": 0, "MaxAttempts": 1000}
        self.dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=at_once)

    def _publish(self, queue_urls: str) -> None:
        ssm = clients.ssm(longest=LONGEST)
        settings = ApiSettings(
            deployment=self.names.deployment,
            queue_urls=queue_urls,
            payloads="payloads",
            direct_horizon=890,
            lookahead=240,
        )
        queue = {"url": self.url, **registry.settings_of(self.settings)}
        for name, told in (
            (self.names.settings_parameter, asdict(settings)),
            (self.names.queue_parameter(QUEUE), queue),
        ):
            ssm.put_parameter(Name=name, Value=json.dumps(told), Type="String", Overwrite=True)
