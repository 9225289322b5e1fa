"""A request and its answer, and what AWS charges of them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

from bench.units import consumed_units, read_units, write_units
from dueline.config.names import Names
from tests.contract.limits import item_bytes

# Each 64 KB of a request's messages is a request: https://aws.amazon.com/sqs/pricing/
SQS_CHUNK_BYTES = 64 * 1024
_READS = ("Query", "BatchGetItem")
_STATE = Names("").state


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request to a service (`dynamodb`, `sqs`) with its body and the bytes of its answer."""

    service: str
    operation: str
    asked: bytes
    answer_bytes: int
    answer: Mapping[str, Any]

    @cached_property
    def body(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.asked)
        return read

    @property
    def items(self) -> int:
        """How many messages, rows or keys were asked for; of a query, how many rows were found."""
        if "Entries" in self.body:
            return len(self.body["Entries"])
        if "RequestItems" in self.body:
            return len(self._batch)
        return len(self.answer.get("Items", "1"))

    @property
    def is_of_state(self) -> bool:
        """Tell whether the request is to the state table, which is on demand whatever the jobs table is."""
        tables: Mapping[str, Any] = self.body.get("RequestItems", {self.body.get("TableName", ""): None})
        return any(name.endswith(_STATE) for name in tables)

    @property
    def writes(self) -> float:
        """The write units that DynamoDB says."""
        return 0.0 if self.operation in _READS else self._units

    @property
    def reads(self) -> float:
        """The read units that DynamoDB says; for a page of nothing, of which dynalite says 0, AWS's least."""
        if self.operation not in _READS:
            return 0.0
        return self._units or (1.0 if self.body.get("ConsistentRead") else 0.5)

    @property
    def units_by_size(self) -> float | None:
        """The units that follow from the sizes of what was put or found; nothing where they are not in the exchange."""
        if self.operation == "Query":
            share = 1.0 if self.body["ConsistentRead"] else 0.5
            return read_units(sum(map(item_bytes, self.answer["Items"]))) * share
        if self.operation == "BatchWriteItem" and all("PutRequest" in each for each in self._batch):
            return float(sum(write_units(item_bytes(each["PutRequest"]["Item"])) for each in self._batch))
        if self.operation == "PutItem":
            return float(write_units(item_bytes(self.body["Item"])))
        return None

    @property
    def charged_requests(self) -> int:
        """As how many requests SQS charges this one: each 64 KB of messages is one."""
        if self.service != "sqs":
            return 0
        return sqs_requests(sum(len(text.encode()) for entry in self._entries for text in _texts(entry)))

    @property
    def is_grouped(self) -> bool:
        """Tell whether a message is sent with a group, which makes the request one of a fair queue."""
        return any("MessageGroupId" in entry for entry in self._entries)

    @property
    def _entries(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.body.get("Entries", [])
        return entries

    @property
    def _batch(self) -> list[Any]:
        (asked,) = self.body["RequestItems"].values()
        batch: list[Any] = asked["Keys"] if isinstance(asked, dict) else asked
        return batch

    @property
    def _units(self) -> float:
        return consumed_units(self.answer)


def sqs_requests(message_bytes: int) -> int:
    """Return as how many requests SQS charges one whose messages have so many bytes together.

    >>> sqs_requests(0), sqs_requests(65_536), sqs_requests(65_537)
    (1, 1, 2)
    """
    return max(1, ceil(message_bytes / SQS_CHUNK_BYTES))


def _texts(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what SQS counts of a message; one that is deleted has nothing of it."""
    yield entry.get("MessageBody", "")
    for name, value in entry.get("MessageAttributes", {}).items():
        yield from (name, value["DataType"], value["StringValue"])
