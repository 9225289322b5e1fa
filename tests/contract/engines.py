"""The engines on which the ports' contract is checked. To add one, write a class and name it in ENGINES."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, Protocol

from moto import mock_aws

from dueline.aws import clients
from dueline.aws.queue import SqsQueue
from dueline.aws.table import DynamoTable
from dueline.memory import MemoryQueue, MemoryTable, VirtualClock
from dueline.message import Message
from dueline.ports import Queue, Table
from tests.builders import NOW
from tests.contract.limits import state_limits

LONGEST = timedelta(seconds=10)


class Engine(Protocol):
    """What runs the ports. Every table and queue that it returns is a new one."""

    def table(self, *, page_rows: int | None = None) -> Table:
        """Return a table whose pages have at most so many rows."""

    def queue(self) -> Queue:
        """Return a queue that exists."""

    def delete(self, queue: Queue) -> None:
        """Delete a queue behind its port's back."""

    def visible(self, queue: Queue) -> list[Message]:
        """Return the bodies and attributes that a worker would receive now."""


class Memory:
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


class Aws:
    """AWS's own protocol, spoken to whatever answers these clients."""

    def __init__(self, dynamodb: Any, sqs: Any) -> None:
        state_limits(dynamodb, sqs)
        self.dynamodb, self.sqs = dynamodb, sqs
        self._names = (f"contract-{number}" for number in itertools.count())
        self._urls: dict[Queue, str] = {}

    def table(self, *, page_rows: int | None = None) -> Table:
        keys = ("pk", "HASH"), ("sk", "RANGE")
        name = next(self._names)
        self.dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": key, "KeyType": type} for key, type in keys],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
        )
        return DynamoTable(self.dynamodb, name, page_rows=page_rows)

    def queue(self) -> Queue:
        url = self.sqs.create_queue(QueueName=next(self._names))["QueueUrl"]
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


@contextmanager
def memory() -> Iterator[Engine]:
    yield Memory()


@contextmanager
def moto() -> Iterator[Engine]:
    with mock_aws():
        yield Aws(clients.dynamodb(longest=LONGEST), clients.sqs(longest=LONGEST))


ENGINES: dict[str, Callable[[], AbstractContextManager[Engine]]] = {"memory": memory, "moto": moto}
