"""The rows of schedules, beside those of rows.py.

| row   | pk                  | sk           | holds                                                                  |
|-------|---------------------|--------------|------------------------------------------------------------------------|
| head  | `{queue}#schedules` | `{schedule}` | generation, start, planned_to, partition, paused, deleted, packed, ttl |
| count | same                | `!count`     | count: of the schedules that are not deleted                           |

`packed` is the rest of a head (schedules/head.py), compressed JSON. `ttl` stands only on one that is deleted.
"""

from dueline.core.rows import Key

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
