"""The table of jobs on DynamoDB."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from dueline.aws.dynamodb.typed import typed, untyped
from dueline.aws.dynamodb.updates import ADVANCE, BEGIN, MARK_DONE, MARK_EXACT, RELEASE, RENEW, TAKE, Update
from dueline.aws.faults import is_conflict, is_refused_condition, translated
from dueline.errors import Throttled, Unavailable
from dueline.model import rows
from dueline.model.job import Partition, State
from dueline.model.rows import Key, PartitionState, Row
from dueline.ports import Page, Reading

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Answer = TypeVar("Answer")

# A row that a transaction has in hand is free again within milliseconds, and the SDK does not try again.
CONFLICT_ATTEMPTS = 4
# Another may begin between the first two: the third succeeds, unless TTL has collected the row meanwhile.
RESERVE_ATTEMPTS = 4
_FENCE_IS_BELOW = "attribute_not_exists(#fence) OR #fence < :fence"
_IS_NEW = "attribute_not_exists(pk)"
# An outcome over another, as Table.record has it.
_IS_NEWS = (
    f"{_IS_NEW} OR #attempts < :attempts OR (#attempts = :attempts AND NOT #state IN (:succeeded, :failed))"
    " OR (#state <> :succeeded AND #started < :started)"
)


class DynamoTable:
    """The table of jobs on DynamoDB, which has two: what is only added is in `name`, what is updated in `state`.

    `client` is boto3's. `page_rows` limits a page's rows; without it DynamoDB's 1 MB does.
    """

    def __init__(self, client: "DynamoDBClient", name: str, *, state: str, page_rows: int | None = None) -> None:
        self._client = client
        self._name = name
        self._state = state
        self._page_rows = page_rows

    def write(self, written: Sequence[Row]) -> list[Row]:
        requests: Any = defaultdict(list)
        for row in written:
            requests[self._of(rows.key(row))].append({"PutRequest": {"Item": _item(row)}})
        with translated(f"writing {len(written)} rows"):
            answer = self._client.batch_write_item(RequestItems=dict(requests))
        left = chain.from_iterable(answer["UnprocessedItems"].values())
        return [_row(each["PutRequest"]["Item"]) for each in left]

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> Reading:
        if not keys:
            return Reading()
        wanted: Any = defaultdict(lambda: {"Keys": [], "ConsistentRead": consistent})
        for key in keys:
            wanted[self._of(key)]["Keys"].append(_key_item(key))
        with translated(f"reading {len(keys)} rows"):
            answer = self._client.batch_get_item(RequestItems=dict(wanted))
        found = map(_row, chain.from_iterable(answer["Responses"].values()))
        left = chain.from_iterable(each["Keys"] for each in answer["UnprocessedKeys"].values())
        return Reading(
            rows={rows.key(row): row for row in found}, unread=frozenset(rows.key(_row(key)) for key in left)
        )

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        if after >= until:  # DynamoDB refuses a BETWEEN whose bounds are the wrong way round
            return Page(rows=[], more=False)
        # BETWEEN includes both ends: the least key above `after` is `after` and one NUL more.
        bounds = _item({":pk": str(partition), ":low": after + "\0", ":high": until})
        with translated(f"reading partition {partition}"):
            answer = self._client.query(
                TableName=self._name,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :low AND :high",
                ExpressionAttributeValues=bounds,
                ConsistentRead=consistent,
                **_limited(self._page_rows, limit),
            )
        return Page(rows=[_row(item) for item in answer["Items"]], more="LastEvaluatedKey" in answer)

    def add(self, row: Row) -> Row:
        if self._put(row, on=_IS_NEW):
            return row
        return self._read_one(rows.key(row)) or row

    def claim(self, row: Row, *, now: datetime) -> Row:
        condition = {
            "ExpressionAttributeNames": {"#ttl": "ttl"},
            "ExpressionAttributeValues": _item({":now": int(now.timestamp())}),
        }
        if self._put(row, on=f"{_IS_NEW} OR #ttl <= :now", **condition):
            return row
        there = self._read_one(rows.key(row))
        if there is None:
            raise Unavailable(f"row {rows.key(row)} was deleted by its TTL meanwhile: try again")
        return there

    def record(self, row: Row) -> bool:
        values = {":attempts": row["attempts"], ":started": row["started"]}
        values |= {":succeeded": State.SUCCEEDED.value, ":failed": State.FAILED.value}
        names = {f"#{name}": name for name in ("attempts", "state", "started")}
        return self._put(row, on=_IS_NEWS, ExpressionAttributeNames=names, ExpressionAttributeValues=_item(values))

    def mark_done(self, key: Key, *, id: str) -> None:
        self._update(key, MARK_DONE, {"done": True, "id": id})

    def move(self, cancellation: Row, job: Row, *, state: Key, fence_below: str) -> bool:
        is_below: Any = {
            "ConditionExpression": _FENCE_IS_BELOW,
            "ExpressionAttributeNames": {"#fence": "fence"},
            "ExpressionAttributeValues": _item({":fence": fence_below}),
        }
        actions: Any = [
            {"ConditionCheck": {"TableName": self._of(state), "Key": _key_item(state), **is_below}},
            {"Put": {"TableName": self._name, "Item": _item(cancellation), "ConditionExpression": _IS_NEW}},
            {"Put": {"TableName": self._name, "Item": _item(job)}},
        ]
        with translated("moving a job"):
            try:
                _patiently(lambda: self._client.transact_write_items(TransactItems=actions))
            except ClientError as error:
                if not is_refused_condition(error):
                    raise
                return False
        return True

    def mark_exact(self, key: Key) -> None:
        self._update(key, MARK_EXACT, {"exact": True})

    def take(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        key = rows.state_key(partition)
        values = {"owner": owner, "lease": lease, "fence": fence, "now": now}
        state = self._update(key, TAKE, values)
        return rows.read_state(self._read_one(key) if state is None else state)

    def checkpoint(self, partition: Partition, *, owner: str, cursor: str, fence: str, lease: str) -> bool:
        values = {"owner": owner, "cursor": cursor, "fence": fence} | ({"lease": lease} if lease else {})
        return self._update(rows.state_key(partition), RENEW if lease else RELEASE, values) is not None

    def reserve(self, key: Key, *, now: int, amount: int, ttl: int) -> int:
        advance = ADVANCE, {"now": now, "amount": amount, "ttl": ttl}
        begin = BEGIN, {"now": now, "begin": now + amount, "ttl": ttl}
        # One of the two conditions holds whenever it is looked at: who is refused by one may have the other.
        for update, values in (advance, begin) * (RESERVE_ATTEMPTS // 2):
            row = self._update(key, update, values)
            if row is not None:
                return int(row["until"])
        raise Throttled(f"row {key} was changed by others at each of {RESERVE_ATTEMPTS} tries: try again")

    def _of(self, key: Key) -> str:
        return self._state if rows.in_state_table(key) else self._name

    def _put(self, row: Row, *, on: str, **condition: Any) -> bool:
        """Put a row on a condition; return whether it was put."""
        with translated("adding a row"):
            try:
                _patiently(
                    lambda: self._client.put_item(
                        TableName=self._of(rows.key(row)), Item=_item(row), ConditionExpression=on, **condition
                    )
                )
            except ClientError as error:
                if is_refused_condition(error):
                    return False
                raise
        return True

    def _read_one(self, key: Key) -> Row | None:
        reading = self.read([key])
        if key in reading.unread:
            raise Unavailable(f"row {key} was left unread: try again")
        return reading.rows.get(key)

    def _update(self, key: Key, update: Update, values: Row) -> Row | None:
        """Update a row on a condition; return the updated row, or None when the condition failed."""
        with translated(f"updating row {key}"):
            try:
                answer = _patiently(
                    lambda: self._client.update_item(
                        TableName=self._of(key),
                        Key=_key_item(key),
                        UpdateExpression=update.expression,
                        ConditionExpression=update.condition,
                        ExpressionAttributeNames={f"#{name}": name for name in update.names},
                        ExpressionAttributeValues=_item({f":{name}": value for name, value in values.items()}),
                        ReturnValues="ALL_NEW",
                    )
                )
            except ClientError as error:
                if is_refused_condition(error):
                    return None
                raise
        return _row(answer["Attributes"])


def _patiently(request: Callable[[], Answer]) -> Answer:
    """Make a request, and repeat it while it conflicts with a transaction on its row."""
    for _ in range(CONFLICT_ATTEMPTS - 1):
        try:
            return request()
        except ClientError as error:
            if not is_conflict(error):
                raise
    return request()


def _limited(*limits: int | None) -> dict[str, Any]:
    given = [limit for limit in limits if limit is not None]
    return {"Limit": min(given)} if given else {}


def _item(row: Row) -> dict[str, Any]:
    return {name: typed(value) for name, value in row.items()}


def _key_item(key: Key) -> dict[str, Any]:
    return _item({"pk": key[0], "sk": key[1]})


def _row(item: Mapping[str, Any]) -> Row:
    return {name: untyped(value) for name, value in item.items()}
