"""Requests as they are counted: a hook on botocore keeps them, and a Step is what some of them come to."""

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

from dueline.core.rows import Row

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
WRITE_UNIT_BYTES, READ_UNIT_BYTES = 1024, 4096
# Each 64 KB of a request's messages is a request: https://aws.amazon.com/sqs/pricing/
SQS_CHUNK_BYTES = 64 * 1024
# What CloudWatch Logs charges of each event besides its text:
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
LOG_EVENT_BYTES = 26
_READS = ("Query", "BatchGetItem")
_BODY = "bench_body"


def row_bytes(row: Row) -> int:
    """Return the bytes that DynamoDB counts of a row, names and values together.

    >>> row_bytes({"pk": "emails#0", "ttl": 1795255290, "exact": True, "packed": b"123"})
    34
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in row.items())


def _value_bytes(value: str | int | bool | bytes) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        # A byte for two significant digits, and one more.
        return (len(str(value).strip("-0")) + 1) // 2 + 1
    return len(value if isinstance(value, bytes) else value.encode())


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the bytes that DynamoDB counts of an item in its own form.

    >>> item_bytes({"pk": {"S": "emails#0"}, "ttl": {"N": "1795255290"}, "packed": {"B": "AAEC"}})
    28
    """
    return row_bytes({name: _plain(*pair) for name, value in item.items() for pair in value.items()})


def _plain(type: str, value: Any) -> str | int | bool | bytes:
    if type == "B" and isinstance(value, str):
        # In a request it is base64, in an answer that boto3 has read it is bytes.
        return base64.b64decode(value)
    plain: str | int | bool | bytes = int(value) if type == "N" else value
    return plain


class NotAsCharged(RuntimeError):
    """The units that the engine says it charges do not follow from the sizes."""


def write_units(size: int) -> int:
    """Return the write units of a row of so many bytes.

    >>> write_units(200), write_units(1024), write_units(1025)
    (1, 1, 2)
    """
    return -(-size // WRITE_UNIT_BYTES)


def read_units(size: int) -> int:
    """Return the read units of a consistent read of so many bytes: one at least.

    >>> read_units(0), read_units(4096), read_units(4097)
    (1, 1, 2)
    """
    return max(1, -(-size // READ_UNIT_BYTES))


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request to a service (`dynamodb`, `sqs`) with its body and its answer."""

    service: str
    operation: str
    request: bytes
    answer: Mapping[str, Any]

    @cached_property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.request)
        return body

    @property
    def items(self) -> int:
        """How many messages, rows or keys the request has; of a query, how many rows were found."""
        if "Entries" in self.body:
            return len(self.body["Entries"])
        return len(self._batch) if "RequestItems" in self.body else len(self.answer.get("Items", "1"))

    @property
    def writes(self) -> float:
        return 0.0 if self.operation in _READS else self._units

    @property
    def reads(self) -> float:
        """The read units that DynamoDB says; for a page of nothing, of which dynalite says 0, AWS's least."""
        if self.operation not in _READS:
            return 0.0
        return self._units or (1.0 if self.body.get("ConsistentRead") else 0.5)

    @property
    def units_by_size(self) -> float | None:
        """The units that follow from the sizes of what was put or found; None where they are not in the exchange."""
        if self.operation == "Query":
            share = 1.0 if self.body["ConsistentRead"] else 0.5
            return read_units(sum(map(item_bytes, self.answer["Items"]))) * share
        if self.operation == "BatchWriteItem" and all("PutRequest" in each for each in self._batch):
            return float(sum(write_units(item_bytes(each["PutRequest"]["Item"])) for each in self._batch))
        if self.operation == "TransactWriteItems":
            # Twice of each row. Those that are not in the request are of less than a unit: fences, and keys' rows.
            puts = [each["Put"]["Item"] for each in self.body["TransactItems"] if "Put" in each]
            others = len(self.body["TransactItems"]) - len(puts)
            return 2.0 * (sum(write_units(item_bytes(each)) for each in puts) + others)
        return float(write_units(item_bytes(self.body["Item"]))) if self.operation == "PutItem" else None

    @property
    def charged_requests(self) -> int:
        """As how many requests SQS charges this one."""
        if self.service != "sqs":
            return 0
        size = sum(len(text.encode()) for entry in self.body.get("Entries", []) for text in _texts(entry))
        return max(1, ceil(size / SQS_CHUNK_BYTES))

    @property
    def is_grouped(self) -> bool:
        """Return whether a message is sent with a group, which makes the request one of a fair queue."""
        return any("MessageGroupId" in entry for entry in self.body.get("Entries", []))

    @property
    def _batch(self) -> list[Any]:
        tables = self.body["RequestItems"].values()
        return [each for table in tables for each in (table["Keys"] if isinstance(table, dict) else table)]

    @property
    def _units(self) -> float:
        consumed = self.answer.get("ConsumedCapacity", [])
        return float(sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed])))


def _texts(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what SQS counts of a message; one that is deleted has nothing of it."""
    yield entry.get("MessageBody", "")
    for name, value in entry.get("MessageAttributes", {}).items():
        yield from (name, value["DataType"], value["StringValue"])


class Meter:
    """Keeps the requests of a boto3 session, to be read afterwards: that costs what is measured no time."""

    def __init__(self, session: Any) -> None:
        self._kept: list[Exchange] | None = None
        session.events.register("before-parameter-build.dynamodb", _request_units)
        session.events.register("before-call", _keep_body)
        session.events.register("after-call", self._keep)

    @contextmanager
    def counting(self) -> Iterator[list[Exchange]]:
        """Yield the list of the requests that are made while the context is open."""
        self._kept = kept = list[Exchange]()
        yield kept
        self._kept = None

    def _keep(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if self._kept is None:
            return
        exchange = Exchange(
            service=model.service_model.service_name,
            operation=model.name,
            request=context[_BODY],
            answer=parsed,
        )
        self._kept += [exchange] * (1 + parsed["ResponseMetadata"].get("RetryAttempts", 0))


def _request_units(params: dict[str, Any], model: Any, **_: Any) -> None:
    if "ReturnConsumedCapacity" in model.input_shape.members:
        params["ReturnConsumedCapacity"] = "TOTAL"


def _keep_body(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context[_BODY] = params["body"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One invocation or call that takes so many jobs a step further.

    `calls` are requests by operation, `items` what they carried, `writes` and `reads` DynamoDB's units, `sent` and
    `grouped` what SQS charges as requests, and those of them whose messages have a group. `logged` are the bytes and
    `lines` the lines that a function wrote. `cpu_seconds` is the CPU time of its process.
    """

    jobs: int
    calls: Mapping[str, int] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    writes: float = 0.0
    reads: float = 0.0
    sent: int = 0
    grouped: int = 0
    logged: int = 0
    lines: int = 0
    cpu_seconds: float = 0.0

    @property
    def charged_log_bytes(self) -> int:
        return self.logged + self.lines * LOG_EVENT_BYTES


def step_of(exchanges: Sequence[Exchange], *, jobs: int, log: str = "", cpu_seconds: float = 0.0) -> Step:
    """Return what exchanges come to. Raises NotAsCharged where units are not those that follow from the sizes."""
    items = Counter[str]()
    for each in exchanges:
        by_size, charged = each.units_by_size, each.writes or each.reads
        if by_size is not None and by_size != charged:
            raise NotAsCharged(f"{each.operation}: the engine charges {charged} units, by size they are {by_size}")
        items[each.operation] += each.items
    return Step(
        jobs=jobs,
        calls=dict(Counter(each.operation for each in exchanges)),
        items=dict(items),
        writes=sum(each.writes for each in exchanges),
        reads=sum(each.reads for each in exchanges),
        sent=sum(each.charged_requests for each in exchanges),
        grouped=sum(each.charged_requests for each in exchanges if each.is_grouped),
        logged=len(log.encode()),
        lines=len(log.splitlines()),
        cpu_seconds=cpu_seconds,
    )
