"""The change of a schedule as the actions of a transaction, in DynamoDB's language."""

from typing import Any

from dueline.aws.dynamodb.items import item, key_item
from dueline.model import rows
from dueline.model.rows import Key, Row
from dueline.model.schedule_rows import MOST_SCHEDULES, Change

_IS_NEW = "attribute_not_exists(pk)"
_IS_AS_READ = "#generation = :generation AND #planned_to = :planned_to"
# Whoever cancelled or moved the job before is told what became of it by what is there already.
_CANCEL = "SET #at = if_not_exists(#at, :at), #exact = :exact, #ttl = if_not_exists(#ttl, :ttl)"
_HAS_ROOM = "attribute_not_exists(#count) OR #count < :most"


def actions_of(change: Change, *, jobs: str, state: str) -> list[Any]:
    """Return what a transaction does for a change, but for what it asks of the fence."""
    cancellations = [_cancel(row, table=jobs) for row in change.cancellations]
    return [_put(change, table=state), *_count(change, table=state), *cancellations]


def _put(change: Change, *, table: str) -> Any:
    put = {"TableName": table, "Item": item(change.head)}
    if not change.generation:
        return {"Put": {**put, "ConditionExpression": _IS_NEW}}
    as_read: Row = {"generation": change.generation, "planned_to": change.planned_to}
    return {"Put": {**put, "ConditionExpression": _IS_AS_READ, **_named(as_read)}}


def _count(change: Change, *, table: str) -> list[Any]:
    if not change.counted:
        return []
    count = {"#count": "count"}, {":counted": change.counted}
    update = _update(change.counter, "ADD #count :counted", table=table, names=count[0], values=count[1])
    if change.counted > 0:
        update["ConditionExpression"] = _HAS_ROOM
        update["ExpressionAttributeValues"] |= item({":most": MOST_SCHEDULES})
    return [{"Update": update}]


def _cancel(row: Row, *, table: str) -> Any:
    values = {name: row[name] for name in ("at", "exact", "ttl")}
    names = {f"#{name}": name for name in values}
    given: Row = {f":{name}": value for name, value in values.items()}
    return {"Update": _update(rows.key(row), _CANCEL, table=table, names=names, values=given)}


def _update(key: Key, expression: str, *, table: str, names: dict[str, str], values: Row) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": key_item(key),
        "UpdateExpression": expression,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": item(values),
    }


def _named(values: Row) -> dict[str, Any]:
    return {
        "ExpressionAttributeNames": {f"#{name}": name for name in values},
        "ExpressionAttributeValues": item({f":{name}": value for name, value in values.items()}),
    }
