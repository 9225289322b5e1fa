"""Fences: tell which partitions have no tick."""

from collections.abc import Sequence
from datetime import datetime

from dueline.model import instant, rows
from dueline.model.job import Partition
from dueline.ports import Spread, Table
from dueline.protocol.partitions import states_of


def without_tick(
    partitions: Sequence[Partition], *, table: Table, now: datetime, spread: Spread = map
) -> list[Partition]:
    """Return those of distinct partitions that have no fence, or one that lies in the past.

    Each tick raises the fence to where it looks ahead, three ticks and more. So none was there for as long, or ever.
    What is left unread is not among them. Raises Throttled or Unavailable.
    """
    states = states_of(partitions, table=table, spread=spread)
    keys = {partition: rows.state_key(partition) for partition in partitions}
    fences = {each: rows.read_state(states.rows.get(key)).fence for each, key in keys.items()}
    return [each for each in partitions if keys[each] not in states.unread and fences[each] < instant.text(now)]
