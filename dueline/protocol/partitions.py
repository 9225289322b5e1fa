"""Partitions: read their states, and find those that never existed and those that no tick reads."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dueline.errors import DuelineError, JobNotFound, Unavailable
from dueline.model import instant, rows
from dueline.model.job import JobId, Partition
from dueline.model.queue_settings import QueueSettings
from dueline.ports import READ_KEYS, Reading, Spread, Table


def states_of(partitions: Collection[Partition], *, table: Table, spread: Spread = map) -> Reading:
    """Read the states of distinct partitions, consistently, 100 a request. Raises Throttled or Unavailable."""
    keys = [rows.state_key(partition) for partition in partitions]
    chunks = [keys[start : start + READ_KEYS] for start in range(0, len(keys), READ_KEYS)]
    readings = list(spread(table.read, chunks))
    return Reading(
        rows={key: row for reading in readings for key, row in reading.rows.items()},
        unread=frozenset(key for reading in readings for key in reading.unread),
    )


def undeclared(ids: Iterable[JobId | DuelineError], *, queue: QueueSettings) -> set[Partition]:
    """Return the partitions of ids that queues.yaml does not declare, or not any more."""
    return {id.partition for id in ids if isinstance(id, JobId) and not queue.declares(id.partition)}


def check_partition(id: JobId, states: Reading, *, queue: QueueSettings) -> None:
    """Raise JobNotFound when a job's partition never existed: queues.yaml does not declare it, and it has no state.

    `states` has the states of partitions that are not declared: one that was removed from queues.yaml keeps its ticks,
    and so its state. Raises Unavailable when its state could not be read.
    """
    key = rows.state_key(id.partition)
    if queue.declares(id.partition) or key in states.rows:
        return
    if key in states.unread:
        raise Unavailable(f"the state of {id.partition} could not be read: try again").copy(job_id=str(id))
    has = "0 alone" if queue.partitions == 1 else f"0 to {queue.partitions - 1}"
    never = f"queue {queue.name!r} never had a partition {id.partition.number}: it has {has}"
    raise JobNotFound(f"no job has the id {id}: {never}")


@dataclass(frozen=True, kw_only=True, slots=True)
class WithoutTick:
    """The partitions that no tick reads any more, and those that none ever read."""

    stopped: Sequence[Partition]
    never: Sequence[Partition]


def without_tick(partitions: Sequence[Partition], *, table: Table, now: datetime, spread: Spread = map) -> WithoutTick:
    """Return the partitions that no tick reads: their fence lies in the past, or they have none.

    Each tick raises the fence to the end of its lookahead, which is three periods or more. So no tick came for that
    long, or ever. Partitions that could not be read are left out. Raises Throttled or Unavailable.
    """
    states = states_of(partitions, table=table, spread=spread)
    keys = {partition: rows.state_key(partition) for partition in partitions}
    read = {each: key for each, key in keys.items() if key not in states.unread}
    fences = {each: rows.read_state(states.rows.get(key)).fence for each, key in read.items()}
    return WithoutTick(
        stopped=[each for each, fence in fences.items() if fence and fence < instant.text(now)],
        never=[each for each, fence in fences.items() if not fence],
    )
