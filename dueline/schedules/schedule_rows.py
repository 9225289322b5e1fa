"""The rows of schedules, beside those of rows.py.

| row   | pk                  | sk           | holds                                                                  |
|-------|---------------------|--------------|------------------------------------------------------------------------|
| head  | `{queue}#schedules` | `{schedule}` | generation, start, planned_to, partition, paused, deleted, packed, ttl |
| count | same                | `!count`     | count: of the schedules that are not deleted                           |

`packed` is the rest of a head (schedules/head.py), compressed JSON. `ttl` stands only on one that is deleted.
"""

import json
from dataclasses import dataclass

from dueline.core.rows import Key, Row, key, unpack
from dueline.errors import Unavailable

# A transaction has 100 actions: two may check the fence, one puts the head and one counts.
CHANGE_CANCELLATIONS = 95
# Of a queue.
MOST_SCHEDULES = 10_000
# Far more than a head has: a payload is packed into 8 KiB at most.
MOST_HEAD_BYTES = 1024 * 1024
# What reading a head raises where the row holds something else.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
COUNT = "!count"
# Sorts after the count, and before each name.
BEFORE_HEADS = "!~"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleSummary:
    """What a head says of a schedule besides its rule."""

    partition: int
    priority: int
    state: str


def summary_of(head: Row) -> ScheduleSummary:
    """Return what a head says; its state is live, paused or deleted. Raises Unavailable when it cannot be read."""
    try:
        packed = head["packed"]
        kept = json.loads(unpack(packed if isinstance(packed, bytes) else b"", most=MOST_HEAD_BYTES))
        definition = kept["definition"]
        return ScheduleSummary(
            partition=int(head["partition"]),
            priority=int(definition.get("priority", 1)),
            state="deleted" if head.get("deleted") else "paused" if head.get("paused") else "live",
        )
    except UNREADABLE as error:
        raise Unavailable(f"row {key(head)} cannot be read: {type(error).__name__}: {error}") from None


def schedules_of(queue: str) -> str:
    """Return the partition key of a queue's schedules."""
    return f"{queue}#schedules"


def head_key(queue: str, name: str) -> Key:
    return schedules_of(queue), name


def tzdata_key(queue: str) -> Key:
    """Return the key of the row, in the table of jobs, that says by which tzdata a queue's planning jobs are due."""
    return f"!tzdata#{queue}", "!tzdata"


def count_key(queue: str) -> Key:
    return schedules_of(queue), COUNT
