"""Items of DynamoDB's tables as rows, the requests for them, and by which time those must be signed."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from dueline.aws.botocore_errors import failed_conditions, is_conflict, is_failed_condition, map_botocore_errors, unless
from dueline.core import instant, rows
from dueline.core.ports import BatchRead
from dueline.core.rows import Key, Row
from dueline.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Answer = TypeVar("Answer")

# A row that a transaction has in hand is free again within milliseconds, and the SDK does not try again.
CONFLICT_ATTEMPTS = 4
_SERIALIZER = TypeSerializer()
_DESERIALIZER = TypeDeserializer()
# Clocks are set back by less all the time.
_SET_BACK = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """An update, and on which condition, if on any."""

    expression: str
    condition: str = ""


_SIGNED: ContextVar[tuple[str, datetime | None]] = ContextVar("signed", default=("", None))


@contextmanager
def signed(*, after: str = "", before: datetime | None = None) -> Iterator[None]:
    """Send no request in this context that is signed over a minute before `after`, or after `before`: Unavailable.

    botocore's own retries are signed, and checked, again. A signature has whole seconds.
    """
    token = _SIGNED.set((after, before))
    try:
        yield
    finally:
        _SIGNED.reset(token)


def _check_signature(request: Any, **_: Any) -> None:
    """Raise Unavailable for a request that is not signed as its context has it, by the time in the signature itself."""
    after, before = _SIGNED.get()
    if not (after or before):
        return
    stamp = request.headers.get("X-Amz-Date", "")
    stamp = stamp.decode() if isinstance(stamp, bytes) else stamp
    at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if before and at > before:
        by = instant.text(before)
        raise Unavailable(f"not sent: it was signed at {instant.text(at)}, and must be by {by}: try again")
    if instant.text(at + _SET_BACK) < after:
        raise Unavailable(f"not sent: the clock was set back from {after} to {instant.text(at)}: try again")


class Items:
    """Items as rows. `client` is boto3's, `table_of` returns the name of the table that has a key."""

    def __init__(self, client: "DynamoDBClient", table_of: Callable[[Key], str]) -> None:
        self._client, self._table_of = client, table_of
        # Before all others of this event: in tests, one of them answers.
        client.meta.events.register_first("before-send.dynamodb", _check_signature, unique_id="dueline-signed")

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> BatchRead:
        """Read up to 100 items in all."""
        request: Any = defaultdict(lambda: {"Keys": [], "ConsistentRead": consistent})
        for key in keys:
            request[self._table_of(key)]["Keys"].append(key_item(key))
        if not keys:
            return BatchRead()
        with map_botocore_errors(f"reading {len(keys)} rows"):
            answer = self._client.batch_get_item(RequestItems=dict(request))
            items = map(as_row, chain.from_iterable(answer["Responses"].values()))
            left = chain.from_iterable(each["Keys"] for each in answer["UnprocessedKeys"].values())
            return BatchRead(
                rows={rows.key(row): row for row in items}, unread=frozenset(rows.key(as_row(key)) for key in left)
            )

    def read_one(self, key: Key) -> Row | None:
        """Read an item. Raises Unavailable when it was left unread."""
        return self.read([key]).whole(f"row {key}").get(key)

    def add(self, row: Row, *, on: str) -> Row:
        """Put an item on a condition; return that which is there now."""
        key = rows.key(row)
        with map_botocore_errors("adding a row"):
            try:
                request = {"TableName": self._table_of(key), "Item": item(row), "ConditionExpression": on}
                put: Any = self._client.put_item
                patiently(lambda: put(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD"))
            except ClientError as error:
                if not is_failed_condition(error):
                    raise
                there: Any = error.response.get("Item")
                # Not every engine but AWS's own returns it.
                return as_row(there) if there else self.read_one(key) or row
        return row

    def put(self, row: Row, *, on: str, values: Row) -> bool:
        """Put an item on a condition; return whether it was put."""
        table = self._table_of(rows.key(row))
        with map_botocore_errors("adding a row"):
            put = partial(self._client.put_item, TableName=table, Item=item(row), **conditional(on, values))
            return unless(is_failed_condition, lambda: patiently(put)) is not None

    def update(self, key: Key, update: Update, values: Row) -> Row | None:
        """Update an item on a condition; return the updated item, or None when the condition failed."""
        with map_botocore_errors(f"updating row {key}"):
            request = update_of(key, update, values, table=self._table_of(key))
            put = partial(self._client.update_item, ReturnValues="ALL_NEW", **request)
            answer = unless(is_failed_condition, lambda: patiently(put))
            return None if answer is None else as_row(answer["Attributes"])

    def transact(self, actions: Sequence[Any]) -> set[int]:
        """Do all actions or none; return the indexes of those whose conditions refused it, none if they were done."""
        try:
            patiently(lambda: self._client.transact_write_items(TransactItems=actions))
        except ClientError as error:
            if refused := failed_conditions(error):
                return refused
            raise
        return set()


def patiently(request: Callable[[], Answer]) -> Answer:
    """Make a request, and repeat it while it conflicts with a transaction on its row."""
    for _ in range(CONFLICT_ATTEMPTS - 1):
        answer = unless(is_conflict, request)
        if answer is not None:
            return answer
    return request()


def update_of(key: Key, update: Update, values: Row, *, table: str) -> dict[str, Any]:
    """Return the request for an update, by itself or in a transaction."""
    condition = {"ConditionExpression": update.condition} if update.condition else {}
    names_and_values = attributes(f"{update.expression} {update.condition}", values)
    request = {"TableName": table, "Key": key_item(key), "UpdateExpression": update.expression}
    return {**request, **condition, **names_and_values}


def conditional(on: str, values: Row) -> dict[str, Any]:
    return {"ConditionExpression": on, **attributes(on, values)}


def attributes(expressions: str, values: Row) -> dict[str, Any]:
    """Return the attributes that expressions name, `#name` as some are words reserved by DynamoDB, and the values."""
    return {
        "ExpressionAttributeNames": {name: name[1:] for name in re.findall(r"#\w+", expressions)},
        "ExpressionAttributeValues": item({f":{name}": value for name, value in values.items()}),
    }


def item(row: Row) -> dict[str, Any]:
    """Return a row as DynamoDB writes it, each value with its type. Raises TypeError where there is no type for one."""
    return {name: _SERIALIZER.serialize(value) for name, value in row.items()}


def key_item(key: Key) -> dict[str, Any]:
    return item({"pk": key[0], "sk": key[1]})


def as_row(item: Mapping[str, Any]) -> Row:
    """Return an item's values without their types: a number as a Decimal, bytes as they are."""
    # boto3 would wrap bytes into a type of its own.
    return {name: each["B"] if "B" in each else _DESERIALIZER.deserialize(each) for name, each in item.items()}
