"""What is counted on: SQS in an emulator, DynamoDB in dynalite, whose units are AWS's, and the real adapters over them.

What answers does not matter to a count of requests; the units do.
"""

import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import boto3

from bench.counted import Meter
from bench.dynein import Dynein, dynein_on_aws
from bench.harness import chunks
from bench.lambdas import Lambdas
from bench.payloads import PARTITIONS, QUEUE
from dueline import Client
from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTable
from dueline.config.environment import PUBLISHED_SCHEMAS, ApiSettings
from dueline.config.names import Names
from dueline.config.registry import Registry
from dueline.core import instant
from dueline.core.job import Partition
from dueline.core.ports import WRITE_ROWS
from dueline.core.queue_settings import QueueSettings
from dueline.core.rows import FIRST, Row, state_key
from tests.builders import RETENTION

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LONGEST = timedelta(seconds=10)
TABLE_SCHEMA: Any = {
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
}


def create_table(client: "DynamoDBClient", name: str) -> None:
    """Create a table as Dueline's, and return when it is there."""
    client.create_table(TableName=name, **TABLE_SCHEMA)
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 0, "MaxAttempts": 1000})


def ticked_once(partition: Partition) -> Row:
    """Return the state of a partition that was ticked long ago: the first tick ever makes more requests."""
    pk, sk = state_key(partition)
    return {"pk": pk, "sk": sk, "fence": instant.text(instant.EPOCH), "cursor": FIRST}


class Stage:
    """A deployment of one queue, at the endpoints that the environment names. `out` is where functions write."""

    def __init__(self, out: io.StringIO) -> None:
        boto3.setup_default_session()
        self.meter = Meter(boto3.DEFAULT_SESSION)
        self.names = Names("dueline")
        self.settings = QueueSettings(name=QUEUE, partitions=PARTITIONS, retention=RETENTION)
        self._numbers = count()
        self._dynamodb, self._sqs = clients.dynamodb(longest=LONGEST), clients.sqs(longest=LONGEST)
        url = self._queue(self.names.queue(QUEUE))
        self._queue(self.names.inbound)
        for table in (self.names.table, self.names.state):
            create_table(self._dynamodb, table)
        queue_urls = url.rpartition("/")[0] + "/"
        self._publish(url, queue_urls)
        queues = Registry({QUEUE: self.settings})
        self.lambdas = Lambdas(queues, deployment=self.names.deployment, queue_urls=queue_urls, out=out)
        self.table = DynamoTable(self._dynamodb, self.names.table, state=self.names.state)
        self.put(ticked_once(Partition(queue=QUEUE, number=number)) for number in range(PARTITIONS))

    @cached_property
    def client(self) -> Client:
        return Client.connect(self.names.deployment, session=boto3.DEFAULT_SESSION, direct=True)

    def partition(self) -> Partition:
        """Return a partition in which nothing has happened yet but a tick, long ago."""
        partition = Partition(queue=QUEUE, number=next(self._numbers))
        self.put([ticked_once(partition)])
        return partition

    def put(self, rows: Iterable[Row]) -> None:
        for some in chunks(list(rows), WRITE_ROWS):
            if self.table.write(some):
                raise RuntimeError("the engine throttled")

    def dynein(self, *, batched: bool) -> Dynein:
        """Return Dynein with queues and a table of its own."""
        name = f"dynein-{next(self._numbers)}"
        create_table(self._dynamodb, name)
        inbound, queue = (self._queue(f"{name}-{way}") for way in ("inbound", "out"))
        return dynein_on_aws(self._dynamodb, self._sqs, table=name, inbound=inbound, queue=queue, batched=batched)

    def _queue(self, name: str) -> str:
        return self._sqs.create_queue(QueueName=name)["QueueUrl"]

    def _publish(self, url: str, queue_urls: str) -> None:
        ssm = clients.ssm(longest=LONGEST)
        names = {"deployment": self.names.deployment, "queue_urls": queue_urls, "payloads": "payloads"}
        settings = ApiSettings(**names, direct_horizon=890, lookahead=240)
        for name, value in (
            (self.names.settings_parameter, asdict(settings)),
            (self.names.schema_parameter, PUBLISHED_SCHEMAS),
            (self.names.queue_parameter(QUEUE), {"url": url, **self.settings.to_json()}),
        ):
            ssm.put_parameter(Name=name, Value=json.dumps(value), Type="String", Overwrite=True)
