"""The rows of schedules, beside those of rows.py, whose table tells where they lie.

| row   | pk                  | sk           | holds                                                                  |
|-------|---------------------|--------------|------------------------------------------------------------------------|
| head  | `{queue}#schedules` | `{schedule}` | generation, start, planned_to, partition, paused, deleted, packed, ttl |
| count | same                | `!count`     | count: of the schedules that are not deleted                           |

`packed` is the rest of a head (schedules/head.py), compressed JSON. `ttl` stands only on one that is deleted.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from dueline.errors import Unavailable
from dueline.model.packing import unpack
from dueline.model.rows import Key, Row, key

# A transaction has 100 actions: two may ask for the fence, one puts the head and one counts.
CHANGE_CANCELLATIONS = 95
# Of a queue.
MOST_SCHEDULES = 10_000
# Far more than a head has: a payload is packed into 8 KiB at most.
MOST_HEAD_BYTES = 1024 * 1024
# The owner of what queues.yaml declares: such a schedule is a resource of its queue's stack.
OF_QUEUES_YAML = "queues.yaml"
COUNT = "!count"
# Sorts after the count, and before each name.
BEFORE_HEADS = "!~"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A new head of a schedule in the place of the one of `generation` that was planned to `planned_to`.

    Where `generation` is 0 there is none. With it go the cancellations of jobs of the partition whose state is the row
    `state`, on condition that its fence is absent or below `fence_below`; without `state` nothing is asked of a fence.
    The number `count` of the row `counter` grows by `counted`, up to MOST_SCHEDULES.
    """

    head: Row
    generation: int
    planned_to: str
    state: Key | None = None
    fence_below: str = ""
    cancellations: Sequence[Row] = ()
    counter: Key
    counted: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sketch:
    """What a head tells of a schedule to who need not know its rule."""

    name: str
    partition: int
    priority: int
    is_live: bool
    is_declared: bool


def sketch_of(head: Row) -> Sketch | None:
    """Return what a head tells, None if its schedule is deleted. Raises Unavailable when it cannot be read."""
    if head.get("deleted"):
        return None
    try:
        packed = head["packed"]
        kept = json.loads(unpack(packed if isinstance(packed, bytes) else b"", most=MOST_HEAD_BYTES))
        definition = kept["definition"]
        return Sketch(
            name=key(head)[1],
            partition=int(head["partition"]),
            priority=int(definition.get("priority", 1)),
            is_live=not head.get("paused"),
            is_declared=definition.get("owner") == OF_QUEUES_YAML,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(f"row {key(head)} cannot be read: {type(error).__name__}: {error}") from None


def schedules_of(queue: str) -> str:
    """Return the partition key of a queue's schedules."""
    return f"{queue}#schedules"


def head_key(queue: str, name: str) -> Key:
    return schedules_of(queue), name


def count_key(queue: str) -> Key:
    return schedules_of(queue), COUNT
