"""Items of DynamoDB's tables, as rows: what is put, updated and read by key."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from dueline.aws.dynamodb.typed import typed, untyped
from dueline.aws.dynamodb.updates import Update
from dueline.aws.faults import is_conflict, is_refused_condition, refused_actions, translated
from dueline.errors import Unavailable
from dueline.model import rows
from dueline.model.rows import Key, Row
from dueline.ports import Reading

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Answer = TypeVar("Answer")

# A row that a transaction has in hand is free again within milliseconds, and the SDK does not try again.
CONFLICT_ATTEMPTS = 4


class Items:
    """The items of whatever tables `client`, which is boto3's, reaches."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self._client = client

    def read(self, keys: Mapping[str, Sequence[Key]], *, consistent: bool = True) -> Reading:
        """Read up to 100 items in all, named by their tables."""
        asked: Any = {
            table: {"Keys": [key_item(key) for key in its], "ConsistentRead": consistent} for table, its in keys.items()
        }
        with translated(f"reading {sum(map(len, keys.values()))} rows"):
            answer = self._client.batch_get_item(RequestItems=asked)
        found = map(as_row, chain.from_iterable(answer["Responses"].values()))
        left = chain.from_iterable(each["Keys"] for each in answer["UnprocessedKeys"].values())
        return Reading(
            rows={rows.key(row): row for row in found}, unread=frozenset(rows.key(as_row(key)) for key in left)
        )

    def read_one(self, key: Key, *, table: str) -> Row | None:
        """Read an item. Raises Unavailable when it was left unread."""
        reading = self.read({table: [key]})
        if key in reading.unread:
            raise Unavailable(f"row {key} was left unread: try again")
        return reading.rows.get(key)

    def put(self, row: Row, *, table: str, on: str, **condition: Any) -> bool:
        """Put an item on a condition; return whether it was put."""
        with translated("adding a row"):
            try:
                patiently(
                    lambda: self._client.put_item(TableName=table, Item=item(row), ConditionExpression=on, **condition)
                )
            except ClientError as error:
                if is_refused_condition(error):
                    return False
                raise
        return True

    def update(self, key: Key, update: Update, values: Row, *, table: str) -> Row | None:
        """Update an item on a condition; return the updated item, or None when the condition failed."""
        with translated(f"updating row {key}"):
            try:
                answer = patiently(
                    lambda: self._client.update_item(
                        TableName=table,
                        Key=key_item(key),
                        UpdateExpression=update.expression,
                        ConditionExpression=update.condition,
                        ExpressionAttributeNames={f"#{name}": name for name in update.names},
                        ExpressionAttributeValues=item({f":{name}": value for name, value in values.items()}),
                        ReturnValues="ALL_NEW",
                    )
                )
            except ClientError as error:
                if is_refused_condition(error):
                    return None
                raise
        return as_row(answer["Attributes"])

    def transact(self, actions: Sequence[Any]) -> set[int]:
        """Do all actions or none; return the indexes of those whose conditions refused it, none if they were done."""
        try:
            patiently(lambda: self._client.transact_write_items(TransactItems=actions))
        except ClientError as error:
            if refused := refused_actions(error):
                return refused
            raise
        return set()


def patiently(request: Callable[[], Answer]) -> Answer:
    """Make a request, and repeat it while it conflicts with a transaction on its row."""
    for _ in range(CONFLICT_ATTEMPTS - 1):
        try:
            return request()
        except ClientError as error:
            if not is_conflict(error):
                raise
    return request()


def item(row: Row) -> dict[str, Any]:
    return {name: typed(value) for name, value in row.items()}


def key_item(key: Key) -> dict[str, Any]:
    return item({"pk": key[0], "sk": key[1]})


def as_row(item: Mapping[str, Any]) -> Row:
    return {name: untyped(value) for name, value in item.items()}
