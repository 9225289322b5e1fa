"""The states that a deployment of before keeps among its jobs, and how a partition's first tick moves them.

Ticks of before may still be at it, and callers of before read its fence for as long as they are not upgraded. So its
row is sealed first, and made where there is none: from then on no tick of before takes or keeps the lease, and the
fence that it shows lies above all jobs, so that no cancel is promised by it. What it held stays beside: `moved_fence`
and `moved_cursor`.
Why that is safe: docs/decisions/0036-states-move-by-themselves.md
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from dueline.aws.dynamodb.items import Items, item, key_item
from dueline.aws.dynamodb.updates import SEAL, TAKE
from dueline.errors import Unavailable
from dueline.model import rows
from dueline.model.control_rows import paused_key, rate_key
from dueline.model.job import Partition
from dueline.model.rows import Key, Row
from dueline.ports import Reading

OWNER = "the-state-table"
# Above each instant that a job may be due at.
END = "9999-12-31T23:59:59.999Z"
_IS_NEW = "attribute_not_exists(pk)"
_BELOW = "attribute_not_exists(#fence) OR #fence < :fence"
BELOW = f"attribute_exists(pk) AND ({_BELOW})"
_BELOW_BEFORE = f"#moved_fence < :fence OR (attribute_not_exists(#moved_fence) AND ({_BELOW}))"


class StatesOfBefore:
    """The states in the table `jobs`, each of which counts until there is one in the table `state`."""

    def __init__(self, items: Items, *, jobs: str, state: str) -> None:
        self._items = items
        self._jobs = jobs
        self._state = state

    def with_states(self, keys: Sequence[Key], reading: Reading, *, consistent: bool) -> Reading:
        """Return what was read of the state table with the states of before in place of those that are not there."""
        absent = [key for key in keys if key[1] == rows.STATE and key not in reading.rows and key not in reading.unread]
        if not absent:
            return reading
        before = self._items.read({self._jobs: absent}, consistent=consistent)
        found = {key: _as_it_was(row) for key, row in before.rows.items()}
        return Reading(rows=reading.rows | found, unread=reading.unread | before.unread)

    def first(self, partition: Partition, taking: Row) -> Row:
        """Take the lease of a partition that has no state yet; return its state then, as `Table.take` does.

        One of before is moved first, once its lease is over. To break off anywhere and begin again is the same.
        """
        key = rows.state_key(partition)
        before = self._items.read_one(key, table=self._jobs) or {}
        sealed = before if _is_sealed(before) else self._seal(key, now=taking["now"])
        if sealed is None:
            return before
        self._move_controls(partition.queue)
        self._items.put(_as_it_was(sealed), table=self._state, on=_IS_NEW)
        taken = self._items.update(key, TAKE, taking, table=self._state)
        return taken or self._items.read_one(key, table=self._state) or {}

    def checks(self, key: Key, below: str) -> list[Any]:
        """Return what a transaction asks of a fence while the state table has none."""
        names = ["fence", "moved_fence"]
        before = check(key, _BELOW_BEFORE, table=self._jobs, names=names, values={"fence": below})
        return [check(key, _IS_NEW, table=self._state), before]

    def _seal(self, key: Key, *, now: Any) -> Row | None:
        """Seal a state of before, or that there is none; return it unless a tick of before has the lease."""
        values = {"owner": OWNER, "end": END, "first": rows.FIRST, "now": now}
        return self._items.update(key, SEAL, values, table=self._jobs)

    def _move_controls(self, queue: str) -> None:
        """Move a queue's pause and rate, unless they were set since."""
        reading = self._items.read({self._jobs: [paused_key(queue), rate_key(queue)]})
        if reading.unread:
            raise Unavailable(f"what controls queue {queue} was left unread: try again")
        for row in reading.rows.values():
            self._items.put(row, table=self._state, on=_IS_NEW)


def check(
    key: Key, condition: str, *, table: str, names: Sequence[str] = (), values: Row = MappingProxyType({})
) -> Any:
    """Return a condition on an item as an action of a transaction."""
    given = {
        "ExpressionAttributeNames": {f"#{name}": name for name in names},
        "ExpressionAttributeValues": item({f":{name}": value for name, value in values.items()}),
    }
    # DynamoDB refuses an empty one.
    kept = {name: value for name, value in given.items() if value}
    return {"ConditionCheck": {"TableName": table, "Key": key_item(key), "ConditionExpression": condition, **kept}}


def _is_sealed(row: Row) -> bool:
    return "moved_fence" in row


def _as_it_was(row: Row) -> Row:
    """Return a state of before as it was before it was sealed."""
    if not _is_sealed(row):
        return row
    pk, sk = rows.key(row)
    return {"pk": pk, "sk": sk, "fence": row["moved_fence"], "cursor": row["moved_cursor"]}
