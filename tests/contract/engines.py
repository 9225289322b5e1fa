"""The engines on which the ports' contract is checked: memory, and on AWS's protocols dynalite and moto."""

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest
import requests
from moto import mock_aws

from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.s3 import S3Payloads
from dueline.aws.sqs import SqsQueue
from dueline.aws.worker_deployment import DynamoLocks
from dueline.core.ports import Payloads, Table
from dueline.testing import MemoryLocks, MemoryPayloads, MemoryQueue, MemoryTable, VirtualClock
from dueline.worker.queue_context import Locks
from tests.builders import NOW
from tests.contract import dynalite

LONGEST = timedelta(seconds=10)


class Memory:
    """The ports in memory. Every table, queue and bucket is a new one, as on the other engines."""

    # What is open while a test runs.
    answering = nullcontext

    def __init__(self) -> None:
        self._clock = VirtualClock(NOW)

    def table(self) -> Table:
        return MemoryTable()

    def locks(self) -> Locks:
        return MemoryLocks()

    def queue(self) -> Any:
        """Return a queue that hides what it was received from for 30 s."""
        return MemoryQueue(name="emails", clock=self._clock)

    def wait(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def delete(self, queue: Any) -> None:
        """Delete a queue behind its port's back."""
        queue.gone = True

    def payloads(self) -> Payloads:
        return MemoryPayloads()

    def upload(self, payloads: Any, url: str, headers: Mapping[str, str], body: bytes) -> bool:
        """PUT a body to a URL without credentials; return whether it was accepted."""
        expected_headers = {"content-length": str(len(body)), "x-amz-checksum-sha256": hashlib.sha256(body).hexdigest()}
        if headers == expected_headers:
            payloads.kept[url.removeprefix(f"memory://{payloads.bucket}/")] = body
        return headers == expected_headers


def create_table(dynamodb: Any, name: str, *keys: str) -> None:
    """Create a table with a partition and maybe a sort key, by default those of jobs."""
    keys = keys or ("pk", "sk")
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": key, "KeyType": type} for key, type in zip(keys, ("HASH", "RANGE"), strict=False)],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
    )


class DynamoDB:
    """DynamoDB's own protocol, spoken to whatever answers at an endpoint."""

    answering: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __init__(self, endpoint: str | None) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if endpoint is not None:
                patch.setenv("AWS_ENDPOINT_URL", endpoint)
            self.dynamodb = clients.client("dynamodb", longest=LONGEST)
        self.names = (f"contract-{number}" for number in itertools.count())

    def table(self) -> Table:
        return DynamoTable(self.dynamodb, self.new_table(), state=self.new_table())

    def locks(self) -> Locks:
        return DynamoLocks(self.dynamodb, self.new_table(), queue="emails")

    def new_table(self, *keys: str) -> str:
        """Create a table, by default with the keys of jobs; return its name."""
        name = next(self.names)
        create_table(self.dynamodb, name, *keys)
        at_once = {"Delay": 0, "MaxAttempts": 1000}
        self.dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=at_once)
        return name


class Moto(DynamoDB):
    """The protocols of DynamoDB, SQS and S3."""

    # Only while a test needs it: moto answers every client of this process.
    answering = staticmethod(mock_aws)

    def __init__(self) -> None:
        super().__init__(endpoint=None)
        self.sqs, self.s3 = (clients.client(service, longest=LONGEST) for service in ("sqs", "s3"))

    def queue(self) -> SqsQueue:
        return SqsQueue(self.sqs, self.sqs.create_queue(QueueName=next(self.names))["QueueUrl"])

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def delete(self, queue: SqsQueue) -> None:
        self.sqs.delete_queue(QueueUrl=queue._url)

    def payloads(self) -> Payloads:
        bucket = next(self.names)
        self.s3.create_bucket(Bucket=bucket)
        return S3Payloads(lambda: self.s3, bucket)

    def upload(self, payloads: Payloads, url: str, headers: Mapping[str, str], body: bytes) -> bool:
        return requests.put(url, data=body, headers=dict(headers), timeout=30).ok


@contextmanager
def _dynalite() -> Iterator[DynamoDB]:
    with dynalite.running() as endpoint:
        yield DynamoDB(endpoint)


Engine = Memory | DynamoDB | Moto
ENGINES: dict[str, Callable[[], AbstractContextManager[Engine]]] = {
    "memory": lambda: nullcontext(Memory()),
    "moto": lambda: nullcontext(Moto()),
    "dynalite": _dynalite,
}
# Each promise is kept in memory, and on AWS's protocol on one engine: dynalite for tables, which is atomic but has no
# transactions, moto for those, SQS and S3. The deployed template runs on a third, MiniStack.
TABLES = ("memory", "dynalite")
TABLES_WITH_TRANSACTIONS = QUEUES = ("memory", "moto")
