"""What is counted on: SQS in an emulator, DynamoDB in dynalite, whose units are AWS's, and the real adapters over them.

What answers does not matter to a count of requests; the units do.
"""

import importlib
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import boto3

from bench.counted import Meter
from bench.dynein import Dynein, dynein_on_aws
from bench.harness import chunks
from bench.payloads import PARTITIONS, QUEUE
from dueline import Client
from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTable
from dueline.config.environment import PUBLISHED_SCHEMAS, ApiSettings, TickSettings
from dueline.config.names import LIVE, Names
from dueline.config.registry import Registry
from dueline.core import instant
from dueline.core.job import Partition, StoredJob
from dueline.core.message import Message
from dueline.core.ports import WRITE_ROWS, QueueMessage
from dueline.core.queue_settings import QueueSettings
from dueline.core.rows import FIRST, Row, state_key
from dueline.testing.local import event_of
from local.emulator import ACCOUNT, REGION
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


def ticked_once(partition: Partition, *, fence: datetime = instant.EPOCH) -> Row:
    """Return the state of a partition that was ticked, by default long ago: the first tick ever makes more requests."""
    pk, sk = state_key(partition)
    return {"pk": pk, "sk": sk, "fence": instant.text(fence), "cursor": FIRST}


# Lambda names the trace to every function, also where it is not traced.
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=557abcec3ee5a047;Sampled=0"
_REQUEST_ID = "8476a536-e9f4-11e8-9739-2dfe598c3fcd"
_SENT = datetime(2026, 11, 21, 7, 5, tzinfo=UTC)


def declare(registry: Registry) -> None:
    """Have functions that are imported from now on know these queues."""
    sys.modules["dueline.functions.queue_registry"] = SimpleNamespace(REGISTRY=registry)  # type: ignore[assignment]
    sys.modules["dueline.functions.declared_queues"] = SimpleNamespace(DECLARED=registry)  # type: ignore[assignment]


def context(function: str, *, alias: str = LIVE) -> Any:
    """Return the context of an invocation of a function, by default by the gateway's alias."""
    return SimpleNamespace(
        function_name=function,
        memory_limit_in_mb=512,
        invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}:{alias}",
        aws_request_id=_REQUEST_ID,
        get_remaining_time_in_millis=lambda: 300_000,
    )


def inbound_event(jobs: Iterable[StoredJob]) -> dict[str, Any]:
    """Return the event by which Lambda brings a batch of the inbound queue."""
    ids = (f"{number:08d}-0000-4000-8000-000000000000" for number in count())
    return event_of(
        (
            QueueMessage(message=Message.of(job), message_id=id, receipt=id * 11, receives=1, sent=_SENT)
            for id, job in zip(ids, jobs, strict=False)
        ),
        name="dueline-inbound",
    )


def schedule_event(queue: str, jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the event by which API Gateway requests to schedule one job, or several."""
    body = jobs[0] if len(jobs) == 1 else {"jobs": list(jobs)}
    return request_event("POST", f"/queues/{queue}/jobs", body)


def request_event(
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/service/i-0123456789abcdef0"
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        "queryStringParameters": dict(query or {}),
        "headers": {"content-type": "application/json", **(headers or {})},
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": "10.0.0.1", "userAgent": "dueline"},
            "stage": "$default",
            "authorizer": {"iam": {"userArn": caller}},
        },
        "isBase64Encoded": False,
        "body": body and json.dumps(body),
    }


class Lambdas:
    """The functions, read when they are first invoked. What they write goes to `out`, which must be `sys.stdout`."""

    def __init__(self, registry: Registry, *, deployment: str, queue_urls: str, out: io.StringIO) -> None:
        self._deployment = deployment
        self._out = out
        common: dict[str, Any] = {"deployment": deployment, "queue_urls": queue_urls}
        os.environ |= TickSettings(**common, tick_period=60, lookahead=240, lease=30).to_env()
        os.environ |= ApiSettings(**common, payloads="payloads", direct_horizon=890, lookahead=240).to_env()
        os.environ |= {"_X_AMZN_TRACE_ID": TRACE}
        declare(registry)

    def invoke(self, function: str, event: Mapping[str, Any]) -> tuple[Any, str, float]:
        """Return what an invocation answered and wrote, and the CPU time that it took: by `api:q-emails`, or `api`."""
        name, _, alias = function.partition(":")
        if f"dueline.functions.{name}" not in sys.modules:
            os.environ["POWERTOOLS_SERVICE_NAME"] = name
        handler = importlib.import_module(f"dueline.functions.{name}").handler
        lambda_context = context(f"{self._deployment}-{name}", alias=alias or LIVE)
        self._out.seek(0)
        self._out.truncate()
        start = time.process_time()
        answer = handler(event, lambda_context)
        return answer, self._out.getvalue(), time.process_time() - start

    @contextmanager
    def throttled(self, queue: str) -> Iterator[None]:
        """Let the API know that the table takes no jobs of a queue, while the context lasts."""
        resources = importlib.import_module("dueline.functions.api").DEPLOYMENT
        resources.breaker(queue).trip()
        try:
            yield
        finally:
            resources.breaker.cache_clear()
            resources.submit.cache_clear()


class Stage:
    """A deployment of one queue, at the endpoints that the environment names. `out` is where functions write."""

    def __init__(self, out: io.StringIO) -> None:
        boto3.setup_default_session()
        self.meter = Meter(boto3.DEFAULT_SESSION)
        self.names = Names("dueline")
        self.settings = QueueSettings(name=QUEUE, partitions=PARTITIONS, retention=RETENTION)
        # Beyond those of the queue, whose fences lie ahead: callers look at all of them until all tick.
        self._numbers = count(PARTITIONS)
        self._dynamodb, self._sqs = clients.client("dynamodb", longest=LONGEST), clients.client("sqs", longest=LONGEST)
        url = self._queue(self.names.queue(QUEUE))
        self._queue(self.names.inbound)
        for table in (self.names.table, self.names.state):
            create_table(self._dynamodb, table)
        queue_urls = url.rpartition("/")[0] + "/"
        self._publish(url, queue_urls)
        queues = Registry({QUEUE: self.settings})
        self.lambdas = Lambdas(queues, deployment=self.names.deployment, queue_urls=queue_urls, out=out)
        self.table = DynamoTable(self._dynamodb, self.names.table, state=self.names.state)
        ahead, partitions = datetime.now(UTC) + timedelta(hours=1), self.settings.all_partitions()
        self.put(ticked_once(partition, fence=ahead) for partition in partitions)

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
        return str(self._sqs.create_queue(QueueName=name)["QueueUrl"])

    def _publish(self, url: str, queue_urls: str) -> None:
        ssm = clients.client("ssm", longest=LONGEST)
        names = {"deployment": self.names.deployment, "queue_urls": queue_urls, "payloads": "payloads"}
        settings = ApiSettings(**names, direct_horizon=890, lookahead=240)
        for name, value in (
            (self.names.settings_parameter, asdict(settings)),
            (self.names.schema_parameter, PUBLISHED_SCHEMAS),
            (self.names.queue_parameter(QUEUE), {"url": url, **self.settings.to_json()}),
        ):
            ssm.put_parameter(Name=name, Value=json.dumps(value), Type="String", Overwrite=True)
