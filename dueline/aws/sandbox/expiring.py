"""Rows that wait for DynamoDB's TTL, each with a note that stays."""

from datetime import datetime
from typing import Any

from dueline.model import instant
from dueline.verify.sandbox import Left

# No partition of any queue: no tick, list or look-up comes here.
_PK = {"S": "!verify#ttl"}
_NOTE, _ROW = "note#", "row#"


class Expiring:
    """Rows in a table whose TTL is in the attribute `ttl`."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def leave(self, name: str, *, until: datetime) -> None:
        note = {"pk": _PK, "sk": {"S": _NOTE + name}, "until": {"S": instant.text(until)}}
        row = {"pk": _PK, "sk": {"S": _ROW + name}, "ttl": {"N": str(int(until.timestamp()))}}
        for item in (note, row):
            self._dynamodb.put_item(TableName=self._table, Item=item)

    def left(self) -> list[Left]:
        items = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": _PK},
            ConsistentRead=True,
        )["Items"]
        there = {item["sk"]["S"].removeprefix(_ROW) for item in items if item["sk"]["S"].startswith(_ROW)}
        notes = {item["sk"]["S"].removeprefix(_NOTE): item["until"]["S"] for item in items if "until" in item}
        return [Left(name=name, until=instant.parse(at), is_there=name in there) for name, at in notes.items()]

    def forget(self, name: str) -> None:
        self._dynamodb.delete_item(TableName=self._table, Key={"pk": _PK, "sk": {"S": _NOTE + name}})
