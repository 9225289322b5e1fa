"""States: read how far partitions are handed over, of many at once."""

from collections.abc import Sequence

from dueline import rows
from dueline.job import Partition
from dueline.ports import READ_KEYS, Reading, Spread, Table


def states_of(partitions: Sequence[Partition], *, table: Table, spread: Spread = map) -> Reading:
    """Read the states of distinct partitions, consistently, 100 a request. Raises Throttled or Unavailable."""
    keys = [rows.state_key(partition) for partition in partitions]
    chunks = [keys[start : start + READ_KEYS] for start in range(0, len(keys), READ_KEYS)]
    readings = list(spread(table.read, chunks))
    return Reading(
        rows={key: row for reading in readings for key, row in reading.rows.items()},
        unread=frozenset(key for reading in readings for key in reading.unread),
    )
