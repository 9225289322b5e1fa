"""The engines on which the ports' contract is checked. To add one, name what starts it in ENGINES, and in the lists."""

import hashlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import boto3
import pytest
import requests
from moto import mock_aws

from dueline.aws import clients
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.s3 import S3Payloads
from dueline.aws.sqs import SqsQueue
from dueline.aws.worker_deployment import DynamoLocks
from dueline.core.message import Message
from dueline.core.ports import Payloads, Pointer, Queue, QueueReader, Table
from dueline.testing import MemoryLocks, MemoryPayloads, MemoryQueue, MemoryTable, VirtualClock
from dueline.worker.queue_context import Locks
from local.emulator import CREDENTIALS, REGION, Emulator
from tests.builders import NOW
from tests.contract import dynalite
from tests.contract.limits import state_limits_of_dynamodb, state_limits_of_sqs

LONGEST = timedelta(seconds=10)


class TableEngine(Protocol):
    """What runs tables, within the context that `answering` opens for a test. Every table is a new one."""

    answering: Callable[[], AbstractContextManager[Any]]

    def table(self, *, page_rows: int | None = None) -> Table:
        """Return a table whose pages have at most so many rows."""

    def locks(self) -> Locks:
        """Return the locks of a queue's schedules, all of them free."""


class QueueEngine(TableEngine, Protocol):
    """What runs queues as well. Every queue is a new one."""

    def queue(self) -> Queue:
        """Return a queue that exists."""

    def inbox(self, queue: Queue) -> QueueReader:
        """Return what receives from a queue, hiding what it received for 30 s."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""

    def delete(self, queue: Queue) -> None:
        """Delete a queue behind its port's back."""

    def visible(self, queue: Queue) -> list[Message]:
        """Return the bodies and attributes that a worker would receive now."""

    def payloads(self) -> Payloads:
        """Return an empty place for payloads."""

    def content(self, payloads: Payloads, pointer: Pointer) -> bytes:
        """Return what a worker reads where a pointer points to."""

    def upload(self, payloads: Payloads, url: str, headers: Mapping[str, str], body: bytes) -> bool:
        """PUT a body to a URL without credentials; return whether it was accepted."""


class Memory:
    answering = nullcontext

    def __init__(self) -> None:
        self._clock = VirtualClock(NOW)

    def table(self, *, page_rows: int | None = None) -> Table:
        return MemoryTable() if page_rows is None else MemoryTable(page_rows=page_rows)

    def locks(self) -> Locks:
        return MemoryLocks()

    def queue(self) -> Queue:
        return MemoryQueue(name="emails", clock=self._clock)

    def inbox(self, queue: Any) -> QueueReader:
        inbox: QueueReader = queue
        return inbox

    def wait(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def delete(self, queue: Any) -> None:
        queue.gone = True

    def visible(self, queue: Any) -> list[Message]:
        due = [each.message for each in queue.deliveries if each.visible <= self._clock.now()]
        return [Message(body=message.body, attributes=message.attributes) for message in due]

    def payloads(self) -> Payloads:
        return MemoryPayloads()

    def content(self, payloads: Any, pointer: Pointer) -> bytes:
        kept: bytes = payloads.kept[pointer.key]
        return kept

    def upload(self, payloads: Any, url: str, headers: Mapping[str, str], body: bytes) -> bool:
        expected_headers = {"content-length": str(len(body)), "x-amz-checksum-sha256": hashlib.sha256(body).hexdigest()}
        if headers == expected_headers:
            payloads.kept[url.removeprefix(f"memory://{payloads.bucket}/")] = body
        return headers == expected_headers


class DynamoDB:
    """DynamoDB's own protocol, spoken to whatever answers at an endpoint."""

    answering: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __init__(self, endpoint: str | None) -> None:
        self.dynamodb = state_limits_of_dynamodb(_at(endpoint, clients.dynamodb))
        self.names = (f"contract-{number}" for number in itertools.count())

    def table(self, *, page_rows: int | None = None) -> Table:
        return DynamoTable(self.dynamodb, self.new_table(), state=self.new_table(), page_rows=page_rows)

    def locks(self) -> Locks:
        return DynamoLocks(self.dynamodb, self.new_table(), queue="emails")

    def new_table(self, *keys: str) -> str:
        """Create a table with a partition and maybe a sort key, by default those of jobs; return its name."""
        keys = tuple(zip(keys or ("pk", "sk"), ("HASH", "RANGE"), strict=False))
        name = next(self.names)
        self.dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": key, "KeyType": type} for key, type in keys],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
        )
        at_once = {"Delay": 0, "MaxAttempts": 1000}
        self.dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=at_once)
        return name


class Aws(DynamoDB):
    """The protocols of DynamoDB, SQS and S3."""

    def __init__(self, endpoint: str | None) -> None:
        super().__init__(endpoint)
        self.sqs = state_limits_of_sqs(_at(endpoint, clients.sqs))
        self.s3 = _at(endpoint, clients.s3)
        self._urls: dict[Queue, str] = {}

    def queue(self) -> Queue:
        url = self.sqs.create_queue(QueueName=next(self.names))["QueueUrl"]
        queue = SqsQueue(self.sqs, url)
        self._urls[queue] = url
        return queue

    def inbox(self, queue: Queue) -> QueueReader:
        return SqsQueue(self.sqs, self._urls[queue])

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def delete(self, queue: Queue) -> None:
        self.sqs.delete_queue(QueueUrl=self._urls[queue])

    def visible(self, queue: Queue) -> list[Message]:
        received = []
        while batch := self._receive(queue):
            received += batch
        return received

    def types(self, queue: Queue) -> dict[str, str]:
        """Return the type of each attribute of the next message."""
        parameters: Any = {"QueueUrl": self._urls[queue], "MessageAttributeNames": ["All"]}
        (message,) = self.sqs.receive_message(**parameters)["Messages"]
        return {name: value["DataType"] for name, value in message["MessageAttributes"].items()}

    def _receive(self, queue: Queue) -> list[Message]:
        answer = self.sqs.receive_message(
            QueueUrl=self._urls[queue], MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=600
        )
        return [
            Message(
                body=each["Body"],
                attributes={name: value["StringValue"] for name, value in each.get("MessageAttributes", {}).items()},
            )
            for each in answer.get("Messages", [])
        ]

    def payloads(self) -> Payloads:
        bucket = next(self.names)
        self.s3.create_bucket(Bucket=bucket)
        return S3Payloads(lambda: self.s3, bucket)

    def content(self, payloads: Payloads, pointer: Pointer) -> bytes:
        body: bytes = self.s3.get_object(Bucket=pointer.bucket, Key=pointer.key)["Body"].read()
        return body

    def upload(self, payloads: Payloads, url: str, headers: Mapping[str, str], body: bytes) -> bool:
        return requests.put(url, data=body, headers=dict(headers), timeout=30).ok


class Moto(Aws):
    # Only while a test needs it: moto answers every client of this process.
    answering = staticmethod(mock_aws)


def _at(endpoint: str | None, client: Callable[..., Any]) -> Any:
    """Return a client as the product makes it, which speaks to an endpoint or else to AWS."""
    with pytest.MonkeyPatch.context() as patch:
        if endpoint is not None:
            patch.setenv("AWS_ENDPOINT_URL", endpoint)
            # MiniStack checks who signed a URL, if nothing else.
            patch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(**CREDENTIALS, region_name=REGION))
        return client(longest=LONGEST)


@contextmanager
def _memory(_: Path) -> Iterator[QueueEngine]:
    yield Memory()


@contextmanager
def _moto(_: Path) -> Iterator[QueueEngine]:
    yield Moto(endpoint=None)


@contextmanager
def _dynalite(_: Path) -> Iterator[TableEngine]:
    with dynalite.running() as endpoint:
        yield DynamoDB(endpoint)


@contextmanager
def _ministack(logs: Path) -> Iterator[QueueEngine]:
    with Emulator(log=logs / "ministack.log") as emulator:
        yield Aws(emulator.endpoint)


ENGINES: dict[str, Callable[[Path], AbstractContextManager[TableEngine]]] = {
    "memory": _memory,
    "moto": _moto,
    "dynalite": _dynalite,
    "ministack": _ministack,
}
# Each promise is kept in memory, and on AWS's protocol on one engine: dynalite for tables, which is atomic but has no
# transactions, MiniStack for those, moto for SQS and S3. With ENGINES=all, on each that can: so that none rests on one
# emulator's quirk.
_ON_ALL = os.environ.get("ENGINES") == "all"
TABLES = tuple(ENGINES) if _ON_ALL else ("memory", "dynalite")
TABLES_WITH_TRANSACTIONS = ("memory", "moto", "ministack") if _ON_ALL else ("memory", "ministack")
# moto looks at a condition and writes in two steps, between which other threads may come.
TABLES_UNDER_THREADS = ("memory", "dynalite", "ministack") if _ON_ALL else ("memory", "dynalite")
TABLES_ON_AWS = ("moto", "dynalite", "ministack") if _ON_ALL else ("dynalite",)
QUEUES = ("memory", "moto", "ministack") if _ON_ALL else ("memory", "moto")
