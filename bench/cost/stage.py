"""What is counted on: SQS in an emulator, DynamoDB in dynalite, whose units are AWS's, and the real adapters over them.

What answers does not matter to a count of requests; the units do.
"""

import io
import json
from dataclasses import asdict
from datetime import timedelta
from functools import cached_property
from itertools import count

import boto3

from bench.cost.lambdas import Lambdas
from bench.cost.meter import Meter
from bench.cost.payloads import PARTITIONS, QUEUE, RETENTION
from bench.dynein import Dynein
from bench.dynein_on_aws import dynein_on_aws
from bench.jobs_table import create_table
from dueline import Client
from dueline.aws import clients
from dueline.aws.dynamodb.table import DynamoTable
from dueline.config import registry
from dueline.config.names import Names
from dueline.config.registry import Registry
from dueline.config.settings import PUBLISHED_SCHEMAS, ApiSettings
from dueline.model import instant
from dueline.model.job import Partition
from dueline.model.queue_settings import QueueSettings
from dueline.model.rows import FIRST, Row, state_key
from dueline.ports import WRITE_ROWS

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
        for table in (self.names.table, self.names.state):
            create_table(self.dynamodb, table)
        queues = Registry({QUEUE: self.settings})
        prefix = self.url.rpartition("/")[0] + "/"
        self._publish(prefix)
        self.lambdas = Lambdas(queues, deployment=self.names.deployment, queue_urls=prefix, out=out)
        self.table = DynamoTable(self.dynamodb, self.names.table, state=self.names.state)
        self._have_ticked()

    @cached_property
    def client(self) -> Client:
        return Client.connect(self.names.deployment, session=boto3.DEFAULT_SESSION, direct=True)

    def partition(self) -> Partition:
        """Return a partition in which nothing has happened yet but a tick, long ago."""
        partition = Partition(queue=QUEUE, number=next(self._numbers))
        self.table.write([_ticked_once(partition)])
        return partition

    def dynein(self, *, batched: bool) -> Dynein:
        """Return Dynein with queues and a table of its own."""
        name = f"dynein-{next(self._numbers)}"
        create_table(self.dynamodb, name)
        inbound, queue = (self._queue(f"{name}-{way}") for way in ("inbound", "out"))
        return dynein_on_aws(self.dynamodb, self.sqs, table=name, inbound=inbound, queue=queue, batched=batched)

    def _have_ticked(self) -> None:
        """Give each partition a state: its first tick ever asks for more, and so does whoever comes before that."""
        states = [_ticked_once(Partition(queue=QUEUE, number=number)) for number in range(PARTITIONS)]
        for start in range(0, PARTITIONS, WRITE_ROWS):
            self.table.write(states[start : start + WRITE_ROWS])

    def _queue(self, name: str) -> str:
        return self.sqs.create_queue(QueueName=name)["QueueUrl"]

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
            (self.names.schema_parameter, PUBLISHED_SCHEMAS),
            (self.names.queue_parameter(QUEUE), queue),
        ):
            ssm.put_parameter(Name=name, Value=json.dumps(told), Type="String", Overwrite=True)


def _ticked_once(partition: Partition) -> Row:
    pk, sk = state_key(partition)
    return {"pk": pk, "sk": sk, "fence": instant.text(instant.EPOCH), "cursor": FIRST}
