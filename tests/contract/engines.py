"""The engines on which the ports' contract is checked. To add one, name what starts it in ENGINES, and in the lists."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from moto import mock_aws

from dueline.aws import clients
from dueline.aws.queue import SqsQueue
from dueline.aws.table import DynamoTable
from dueline.memory import MemoryQueue, MemoryTable, VirtualClock
from dueline.message import Message
from dueline.ports import Queue, Table
from local.emulator import Emulator
from tests.builders import NOW
from tests.contract import dynalite
from tests.contract.limits import state_limits_of_dynamodb, state_limits_of_sqs

LONGEST = timedelta(seconds=10)


class TableEngine(Protocol):
    """What runs tables, within the context that `answering` opens for a test. Every table is a new one."""

    answering: Callable[[], AbstractContextManager[Any]]

    def table(self, *, page_rows: int | None = None) -> Table:
        """Return a table whose pages have at most so many rows."""


class QueueEngine(TableEngine, Protocol):
    """What runs queues as well. Every queue is a new one."""

    def queue(self) -> Queue:
        """Return a queue that exists."""

    def delete(self, queue: Queue) -> None:
        """Delete a queue behind its port's back."""

    def visible(self, queue: Queue) -> list[Message]:
        """Return the bodies and attributes that a worker would receive now."""


class Memory:
    answering = nullcontext

    def __init__(self) -> None:
        self._clock = VirtualClock(NOW)

    def table(self, *, page_rows: int | None = None) -> Table:
        return MemoryTable() if page_rows is None else MemoryTable(page_rows=page_rows)

    def queue(self) -> Queue:
        return MemoryQueue(name="emails", clock=self._clock)

    def delete(self, queue: Any) -> None:
        queue.gone = True

    def visible(self, queue: Any) -> list[Message]:
        due = [each.message for each in queue.deliveries if each.visible <= self._clock.now()]
        return [Message(body=message.body, attributes=message.attributes) for message in due]


class DynamoDB:
    """DynamoDB's own protocol, spoken to whatever answers at an endpoint."""

    answering: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __init__(self, endpoint: str | None) -> None:
        self.dynamodb = state_limits_of_dynamodb(_at(endpoint, clients.dynamodb))
        self.names = (f"contract-{number}" for number in itertools.count())

    def table(self, *, page_rows: int | None = None) -> Table:
        return DynamoTable(self.dynamodb, self.new_table(), page_rows=page_rows)

    def new_table(self) -> str:
        """Create a table; return its name."""
        keys = ("pk", "HASH"), ("sk", "RANGE")
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
    """The protocols of DynamoDB and SQS."""

    def __init__(self, endpoint: str | None) -> None:
        super().__init__(endpoint)
        self.sqs = state_limits_of_sqs(_at(endpoint, clients.sqs))
        self._urls: dict[Queue, str] = {}

    def queue(self) -> Queue:
        url = self.sqs.create_queue(QueueName=next(self.names))["QueueUrl"]
        queue = SqsQueue(self.sqs, url)
        self._urls[queue] = url
        return queue

    def delete(self, queue: Queue) -> None:
        self.sqs.delete_queue(QueueUrl=self._urls[queue])

    def visible(self, queue: Queue) -> list[Message]:
        received = []
        while batch := self._receive(queue):
            received += batch
        return received

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


class Moto(Aws):
    # Only while a test asks for it: moto answers every client of this process.
    answering = staticmethod(mock_aws)


def _at(endpoint: str | None, client: Callable[..., Any]) -> Any:
    """Return a client as the product makes it, which speaks to an endpoint or else to AWS."""
    with pytest.MonkeyPatch.context() as patch:
        if endpoint is not None:
            patch.setenv("AWS_ENDPOINT_URL", endpoint)
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
TABLES = tuple(ENGINES)
# dynalite has no transactions.
TABLES_WITH_TRANSACTIONS = ("memory", "moto", "ministack")
TABLES_ON_AWS = ("moto", "dynalite", "ministack")
QUEUES = ("memory", "moto", "ministack")
