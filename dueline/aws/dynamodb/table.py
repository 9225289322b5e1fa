"""The table of jobs on DynamoDB."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from dueline.aws.dynamodb.before import BELOW, StatesOfBefore, check
from dueline.aws.dynamodb.items import Items, as_row, item
from dueline.aws.dynamodb.updates import ADVANCE, ASK, BEGIN, MARK_DONE, MARK_EXACT, PLAN, RELEASE, RENEW, TAKE, Update
from dueline.aws.faults import translated
from dueline.errors import Throttled, Unavailable
from dueline.model import rows
from dueline.model.job import Partition, State
from dueline.model.rows import Key, PartitionState, Row
from dueline.ports import Page, Reading

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from dueline.model.schedule_rows import Change

# Another may begin between the first two: the third succeeds, unless TTL has collected the row meanwhile.
RESERVE_ATTEMPTS = 4
_IS_NEW = "attribute_not_exists(pk)"
# An outcome over another, as Table.record has it.
_IS_NEWS = (
    f"{_IS_NEW} OR #attempts < :attempts OR (#attempts = :attempts AND NOT #state IN (:succeeded, :failed, :skipped))"
    " OR (#state <> :succeeded AND #started < :started)"
)
_IS_NEWS_OF_A_SKIP = f"({_IS_NEWS}) AND ({_IS_NEW} OR #state <> :succeeded)"


class DynamoTable:
    """The table of jobs on DynamoDB, which has two: what is only added is in `name`, what is updated in `state`.

    `client` is boto3's. `page_rows` limits a page's rows; without it DynamoDB's 1 MB does.
    """

    def __init__(self, client: "DynamoDBClient", name: str, *, state: str, page_rows: int | None = None) -> None:
        self._client = client
        self._name = name
        self._state = state
        self._page_rows = page_rows
        self._items = Items(client)
        self._before = StatesOfBefore(self._items, jobs=name, state=state)

    def write(self, written: Sequence[Row]) -> list[Row]:
        requests: Any = defaultdict(list)
        for row in written:
            requests[self._of(rows.key(row))].append({"PutRequest": {"Item": item(row)}})
        with translated(f"writing {len(written)} rows"):
            answer = self._client.batch_write_item(RequestItems=dict(requests))
        left = chain.from_iterable(answer["UnprocessedItems"].values())
        return [as_row(each["PutRequest"]["Item"]) for each in left]

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> Reading:
        asked: dict[str, list[Key]] = defaultdict(list)
        for key in keys:
            asked[self._of(key)].append(key)
        reading = self._items.read(asked, consistent=consistent) if keys else Reading()
        return self._before.with_states(keys, reading, consistent=consistent)

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        return self._query(self._name, str(partition), after, until, consistent=consistent, limit=limit)

    def last(self, partition: Partition) -> Row | None:
        with translated(f"reading the end of partition {partition}"):
            answer = self._client.query(
                TableName=self._name,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues=item({":pk": str(partition)}),
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=1,
            )
        return as_row(answer["Items"][0]) if answer["Items"] else None

    def add(self, row: Row) -> Row:
        if self._put(row, on=_IS_NEW):
            return row
        return self._read_one(rows.key(row)) or row

    def claim(self, row: Row, *, now: datetime) -> Row:
        condition = {
            "ExpressionAttributeNames": {"#ttl": "ttl"},
            "ExpressionAttributeValues": item({":now": int(now.timestamp())}),
        }
        if self._put(row, on=f"{_IS_NEW} OR #ttl <= :now", **condition):
            return row
        there = self._read_one(rows.key(row))
        if there is None:
            raise Unavailable(f"row {rows.key(row)} was deleted by its TTL meanwhile: try again")
        return there

    def record(self, row: Row) -> bool:
        values = {":attempts": row["attempts"], ":started": row["started"]}
        values |= {f":{state}": state.value for state in (State.SUCCEEDED, State.FAILED, State.SKIPPED)}
        names = {f"#{name}": name for name in ("attempts", "state", "started")}
        on = _IS_NEWS_OF_A_SKIP if row["state"] == State.SKIPPED else _IS_NEWS
        return self._put(row, on=on, ExpressionAttributeNames=names, ExpressionAttributeValues=item(values))

    def mark_done(self, key: Key, *, id: str) -> None:
        self._update(key, MARK_DONE, {"done": True, "id": id})

    def ask_for(self, key: Key) -> Row | None:
        return self._update(key, ASK, {"none": 0})

    def move(self, cancellation: Row, job: Row, *, state: Key, fence_below: str) -> bool:
        puts: Any = [
            {"Put": {"TableName": self._name, "Item": item(cancellation), "ConditionExpression": _IS_NEW}},
            {"Put": {"TableName": self._name, "Item": item(job)}},
        ]
        with translated("moving a job"):
            return self._transact_below(puts, state=state, fence_below=fence_below)

    def change(self, change: "Change") -> bool:
        from dueline.aws.dynamodb.heads import actions_of  # what ticks and ingest do not load

        actions = actions_of(change, jobs=self._name, state=self._state)
        with translated(f"changing schedule {rows.key(change.head)}"):
            if change.state is None:
                return not self._items.transact(actions)
            return self._transact_below(actions, state=change.state, fence_below=change.fence_below)

    def plan(self, key: Key, *, generation: int, planned_to: str, to: str) -> bool:
        return self._update(key, PLAN, {"generation": generation, "planned_to": planned_to, "to": to}) is not None

    def heads(self, queue: str, *, after: str, limit: int) -> Page:
        from dueline.model.schedule_rows import BEFORE_HEADS, schedules_of

        after = max(after, BEFORE_HEADS)
        return self._query(self._state, schedules_of(queue), after, "~", consistent=True, limit=limit)

    def mark_exact(self, key: Key) -> None:
        self._update(key, MARK_EXACT, {"exact": True})

    def take(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        key = rows.state_key(partition)
        values = {"owner": owner, "lease": lease, "fence": fence, "now": now}
        state = self._update(key, TAKE, values) or self._items.read_one(key, table=self._state)
        return rows.read_state(state or self._before.first(partition, values))

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

    def _query(self, table: str, pk: str, after: str, until: str, *, consistent: bool, limit: int | None) -> Page:
        if after >= until:  # DynamoDB refuses a BETWEEN whose bounds are the wrong way round
            return Page(rows=[], more=False)
        # BETWEEN includes both ends: the least key above `after` is `after` and one NUL more.
        bounds = item({":pk": pk, ":low": after + "\0", ":high": until})
        with translated(f"reading partition {pk}"):
            answer = self._client.query(
                TableName=table,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :low AND :high",
                ExpressionAttributeValues=bounds,
                ConsistentRead=consistent,
                **_limited(self._page_rows, limit),
            )
        return Page(rows=[as_row(each) for each in answer["Items"]], more="LastEvaluatedKey" in answer)

    def _transact_below(self, actions: Sequence[Any], *, state: Key, fence_below: str) -> bool:
        """Do all actions or none, on condition that a fence is absent or below; tell whether they were done."""
        is_below = check(state, BELOW, table=self._state, names=["fence"], values={"fence": fence_below})

        def done(checks: Sequence[Any]) -> bool:
            return not self._items.transact([*checks, *actions])

        refused = self._items.transact([is_below, *actions])
        if refused != {0}:
            return not refused
        there = self._items.read_one(state, table=self._state)
        if there and rows.read_state(there).fence >= fence_below:
            return False
        # A first tick may come meanwhile: then what it made of the state decides.
        return (not there and done(self._before.checks(state, fence_below))) or done([is_below])

    def _of(self, key: Key) -> str:
        return self._state if rows.in_state_table(key) else self._name

    def _read_one(self, key: Key) -> Row | None:
        return self._items.read_one(key, table=self._of(key))

    def _put(self, row: Row, *, on: str, **condition: Any) -> bool:
        return self._items.put(row, table=self._of(rows.key(row)), on=on, **condition)

    def _update(self, key: Key, update: Update, values: Row) -> Row | None:
        return self._items.update(key, update, values, table=self._of(key))


def _limited(*limits: int | None) -> dict[str, Any]:
    given = [limit for limit in limits if limit is not None]
    return {"Limit": min(given)} if given else {}
