"""The table of jobs on DynamoDB, its items as rows, and the conditions of each write in DynamoDB's language."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from dueline.aws.botocore_errors import is_refused_setting, map_botocore_errors
from dueline.aws.dynamodb_items import Items, Update, as_row, conditional, item, key_item, signed, update_of
from dueline.core import rows
from dueline.core.job import Partition, State
from dueline.core.ports import BatchRead, KeyChange, MoveOutcome, Page, ScheduleChange
from dueline.core.rows import Key, PartitionState, Row
from dueline.errors import NotYet, Throttled, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TAKE = Update(
    expression="SET #owner = :owner, #lease = :lease, #fence = :fence",
    condition="(attribute_not_exists(#owner) OR #owner = :owner OR #lease <= :now)"
    " AND (attribute_not_exists(#fence) OR #fence <= :fence)",
)
_HELD = "#owner = :owner AND (attribute_not_exists(#cursor) OR #cursor <= :cursor) AND #fence <= :fence"
RENEW = Update(expression="SET #cursor = :cursor, #fence = :fence, #lease = :lease", condition=_HELD)
RELEASE = Update(expression="SET #cursor = :cursor, #fence = :fence REMOVE #owner, #lease", condition=_HELD)
# It changes nothing, and is refused while a transaction has the row in hand, as every write is.
TOUCH = Update(expression="SET #ttl = #ttl", condition="#ttl > :none")
MARK_EXACT = Update(expression="SET #exact = :exact", condition="attribute_exists(#exact)")
MARK_DONE = Update(expression="SET #done = :done", condition="#id = :id")
# What of a key's row is as it was read when another job takes it over.
_AS_READ = ("id", "done", "calls")
_AS_BEFORE, _WITHOUT_CALLS = "#calls = :before", "attribute_not_exists(#calls)"
CHANGE_CALLS = Update(expression="SET #calls = :after", condition=_AS_BEFORE)
SHARE = Update(expression="SET #shared = :shared", condition="#id = :id AND attribute_not_exists(#released)")
RELEASE_KEY = Update(
    expression="SET #released = :released, #ttl = :ttl",
    condition="#id = :id AND #done = :false AND attribute_not_exists(#shared)",
)
ADVANCE = Update(expression="SET #until = #until + :amount, #ttl = :ttl", condition="#until >= :now")
BEGIN = Update(
    expression="SET #until = :begin, #ttl = :ttl",
    condition="attribute_not_exists(#until) OR #until < :now",
)
PLAN = Update(
    expression="SET #planned_to = :to",
    condition="#generation = :generation AND #planned_to = :planned_to",
)
# Another may begin between the first two: the third succeeds, unless TTL has collected the row meanwhile.
RESERVE_ATTEMPTS = 4
_IS_NEW = "attribute_not_exists(pk)"
# An outcome over another, as Table.record has it.
_IS_NEWS = (
    f"{_IS_NEW} OR #attempts < :attempts OR (#attempts = :attempts AND NOT #state IN (:succeeded, :failed, :skipped))"
    " OR (#state <> :succeeded AND #started < :started)"
)
_IS_NEWS_OF_A_SKIP = f"({_IS_NEWS}) AND ({_IS_NEW} OR #state <> :succeeded)"
_IS_AS_READ = "#generation = :generation AND #planned_to = :planned_to"
# A cancellation that exists says what became of the job: it keeps its values.
_CANCEL = Update(expression="SET #at = if_not_exists(#at, :at), #exact = :exact, #ttl = if_not_exists(#ttl, :ttl)")
# In a move, behind the check of the fence, the cancellation and the row of the job.
_KEY_ACTION = 3
_COUNT = Update(expression="ADD #count :counted")
_COUNT_IF_ROOM = Update(expression=_COUNT.expression, condition="attribute_not_exists(#count) OR #count < :most")


class DynamoTable:
    """The table of jobs on DynamoDB, which has two: what is only added is in `name`, what is updated in `state`.

    `client` is boto3's.
    """

    def __init__(self, client: "DynamoDBClient", name: str, *, state: str) -> None:
        self._client = client
        self._name = name
        self._state = state
        self._items = Items(client, self._of)

    def write(self, written: Sequence[Row], *, signed_before: datetime | None = None) -> list[Row]:
        requests: Any = defaultdict(list)
        for row in written:
            requests[self._of(rows.key(row))].append({"PutRequest": {"Item": item(row)}})
        with signed(before=signed_before), map_botocore_errors(f"writing {len(written)} rows"):
            answer = self._client.batch_write_item(RequestItems=dict(requests))
            left = chain.from_iterable(answer["UnprocessedItems"].values())
            return [as_row(each["PutRequest"]["Item"]) for each in left]

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> BatchRead:
        return self._items.read(keys, consistent=consistent)

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        return self._query(self._name, str(partition), after, until, consistent=consistent, limit=limit)

    def outcomes(self, partition: Partition, *, after: str, until: str, limit: int) -> Page:
        pk = rows.outcomes_of(partition)
        return self._query(self._name, pk, after, until, consistent=False, limit=limit, last_first=True)

    def add(self, row: Row, *, signed_before: datetime | None = None) -> Row:
        with signed(before=signed_before):
            return self._items.add(row, on=_IS_NEW)

    def claim(self, row: Row, *, now: datetime) -> Row:
        if self._items.put(row, on=f"{_IS_NEW} OR #ttl <= :now", values={"now": int(now.timestamp())}):
            return row
        there = self._items.read_one(rows.key(row))
        if there is None:
            raise Unavailable(f"row {rows.key(row)} was deleted by its TTL meanwhile: try again")
        return there

    def take_over(self, row: Row, *, there: Row) -> bool:
        condition = " AND ".join(
            f"#{name} = :{name}" if name in there else f"attribute_not_exists(#{name})" for name in _AS_READ
        )
        return self._items.put(row, on=condition, values={name: there[name] for name in _AS_READ if name in there})

    def record(self, row: Row) -> bool:
        values = {"attempts": row["attempts"], "started": row["started"]}
        values |= {str(state): state.value for state in (State.SUCCEEDED, State.FAILED, State.SKIPPED)}
        on = _IS_NEWS_OF_A_SKIP if row["state"] == State.SKIPPED else _IS_NEWS
        return self._items.put(row, on=on, values=values)

    def share(self, key: Key, *, id: str) -> bool:
        return self._items.update(key, SHARE, {"shared": True, "id": id}) is not None

    def release(self, key: Key, *, id: str, ttl: int) -> bool:
        values: Row = {"released": True, "ttl": ttl, "id": id, "false": False}
        return self._items.update(key, RELEASE_KEY, values) is not None

    def mark_done(self, key: Key, *, id: str) -> bool:
        return self._items.update(key, MARK_DONE, {"done": True, "id": id}) is not None

    def change_calls(self, key: Key, *, before: str, after: str) -> bool:
        return self._items.update(key, CHANGE_CALLS, {"before": before, "after": after}) is not None

    def read_barrier(self, key: Key) -> Row | None:
        return self._items.update(key, TOUCH, {"none": 0})

    def move(
        self, cancellation: Row, job: Row, *, state: Key, fence_below: str, change: KeyChange | None = None
    ) -> MoveOutcome:
        actions: Any = [
            {"Put": {"TableName": self._name, "Item": item(cancellation), "ConditionExpression": _IS_NEW}},
            {"Put": {"TableName": self._name, "Item": item(job)}},
        ]
        actions += [] if change is None else [_change_key(change, table=self._name)]
        with map_botocore_errors("moving a job"):
            refused = self._transact_below(actions, state=state, fence_below=fence_below)
        if not refused:
            return MoveOutcome.DONE
        return MoveOutcome.KEY_CHANGED if refused == {_KEY_ACTION} else MoveOutcome.REFUSED

    def change(self, change: ScheduleChange) -> bool:
        actions = [_put_head(change, table=self._state), *_count_schedules(change, table=self._state)]
        for row in change.cancellations:
            values = {name: row[name] for name in ("at", "exact", "ttl")}
            actions.append(_update(rows.key(row), _CANCEL, values, table=self._name))
        with map_botocore_errors(f"changing schedule {rows.key(change.head)}"):
            if change.state is None:
                return not self._items.transact(actions)
            return not self._transact_below(actions, state=change.state, fence_below=change.fence_below)

    def plan(self, key: Key, *, generation: int, planned_to: str, to: str) -> bool:
        return self._items.update(key, PLAN, {"generation": generation, "planned_to": planned_to, "to": to}) is not None

    def heads(self, queue: str, *, after: str, limit: int) -> Page:
        after = max(after, rows.BEFORE_HEADS)
        return self._query(self._state, rows.schedules_of(queue), after, "~", consistent=True, limit=limit)

    def mark_exact(self, key: Key) -> None:
        self._items.update(key, MARK_EXACT, {"exact": True})

    def acquire_lease(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        key = rows.state_key(partition)
        values = {"owner": owner, "lease": lease, "fence": fence, "now": now}
        with signed(after=now):
            state = self._items.update(key, TAKE, values)
        return rows.read_state(state or self._items.read_one(key))

    def checkpoint(
        self, partition: Partition, *, owner: str, cursor: str, fence: str, lease: str, now: str = ""
    ) -> bool:
        values = {"owner": owner, "cursor": cursor, "fence": fence} | ({"lease": lease} if lease else {})
        with signed(after=now):
            return self._items.update(rows.state_key(partition), RENEW if lease else RELEASE, values) is not None

    def reserve(self, key: Key, *, now: int, amount: int, ttl: int) -> int:
        advance = ADVANCE, {"now": now, "amount": amount, "ttl": ttl}
        begin = BEGIN, {"now": now, "begin": now + amount, "ttl": ttl}
        # One of the two conditions holds whenever it is looked at: who is refused by one may have the other.
        for update, values in (advance, begin) * (RESERVE_ATTEMPTS // 2):
            row = self._items.update(key, update, values)
            if row is not None:
                return int(row["until"])
        raise Throttled(f"row {key} was changed by others at each of {RESERVE_ATTEMPTS} tries: try again")

    def _query(
        self,
        table: str,
        pk: str,
        after: str,
        until: str,
        *,
        consistent: bool,
        limit: int | None,
        last_first: bool = False,
    ) -> Page:
        if after >= until:  # DynamoDB refuses a BETWEEN whose bounds are the wrong way round
            return Page(rows=[], more=False)
        # BETWEEN includes both ends: the least key above `after` has one NUL more, if that may be a key.
        is_longest = len(after.encode()) >= rows.MAX_KEY_BYTES
        bounds = item({":pk": pk, ":low": after if is_longest else after + "\0", ":high": until})
        start: Any = {"ExclusiveStartKey": key_item((pk, after))} if is_longest else {}
        most: Any = {} if limit is None else {"Limit": limit}
        with map_botocore_errors(f"reading partition {pk}"):
            answer = self._client.query(
                TableName=table,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :low AND :high",
                ExpressionAttributeValues=bounds,
                ConsistentRead=consistent,
                ScanIndexForward=not last_first,
                **most,
                **start,
            )
            return Page(rows=[as_row(each) for each in answer["Items"]], more="LastEvaluatedKey" in answer)

    def _transact_below(self, actions: Sequence[Any], *, state: Key, fence_below: str) -> set[int]:
        """Do all actions or none, if a fence is absent or below; return which conditions refused, 0 is the fence's."""
        is_below = conditional("attribute_not_exists(#fence) OR #fence < :fence", {"fence": fence_below})
        check = {"TableName": self._state, "Key": key_item(state), **is_below}
        return self._items.transact([{"ConditionCheck": check}, *actions])

    def _of(self, key: Key) -> str:
        return self._state if rows.in_state_table(key) else self._name


def _put_head(change: ScheduleChange, *, table: str) -> Any:
    put = {"TableName": table, "Item": item(change.head)}
    if not change.generation:
        return {"Put": {**put, "ConditionExpression": _IS_NEW}}
    as_read: Row = {"generation": change.generation, "planned_to": change.planned_to}
    return {"Put": {**put, **conditional(_IS_AS_READ, as_read)}}


def _count_schedules(change: ScheduleChange, *, table: str) -> list[Any]:
    if not change.counted:
        return []
    if change.counted < 0:
        return [_update(change.counter, _COUNT, {"counted": change.counted}, table=table)]
    values: Row = {"counted": change.counted, "most": rows.MOST_SCHEDULES}
    return [_update(change.counter, _COUNT_IF_ROOM, values, table=table)]


def _change_key(change: KeyChange, *, table: str) -> Any:
    """Return the action that changes the row of a key, if it has the id and the calls that are expected."""
    values: Row = {name: value for name, value in change.row.items() if name not in ("pk", "sk")}
    expression = f"SET {', '.join(f'#{name} = :{name}' for name in values)} REMOVE #shared, #released"
    before: Row = {"before": change.before} if "calls" in values and change.before else {}
    on_calls = f" AND {_AS_BEFORE if before else _WITHOUT_CALLS}" if "calls" in values else ""
    values = {**values, **before, "expected": change.expected}
    update = Update(expression=expression, condition=f"#id = :expected{on_calls}")
    return _update(rows.key(change.row), update, values, table=table)


def _update(key: Key, update: Update, values: Row, *, table: str) -> Any:
    return {"Update": update_of(key, update, values, table=table)}


class DynamoTimeToLive:
    """DynamoDB's TTL on a table. `client` is boto3's."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def is_on(self) -> bool:
        with map_botocore_errors(f"reading the TTL of {self._table}"):
            answer = self._client.describe_time_to_live(TableName=self._table)
            return answer["TimeToLiveDescription"]["TimeToLiveStatus"] in ("ENABLED", "ENABLING")

    def switch(self, *, on: bool) -> None:
        # DynamoDB refuses what is set already, and any change within an hour of the last one:
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html
        if self.is_on() == on:
            return
        doing = f"switching the TTL of {self._table} {'on' if on else 'off'}"
        with map_botocore_errors(doing):
            try:
                self._client.update_time_to_live(
                    TableName=self._table, TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": on}
                )
            except ClientError as error:
                if not is_refused_setting(error):
                    raise
                raise NotYet(f"{doing}: {error}") from error
