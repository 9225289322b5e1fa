"""Overview: tell how a queue is doing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline import instant, rows
from dueline.errors import QueueNotFound
from dueline.listing import Snapshot, Span, partitions_of, read_states, scan
from dueline.ports import Depth, Queue, Spread, Table
from dueline.queue import QueueSettings
from dueline.rows import Key, Row

MOST_COUNTED = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """How many jobs of a queue are where.

    `scheduled` is counted up to 1,000; `more_scheduled` tells that there may be more. `next_due` is when the earliest
    of them is due. `fence_age` is how many seconds ago the oldest fence of its partitions was raised; None while one of
    them has none, for want of a tick. `depth` is the queue's own, `dead` how many jobs are in its dead-letter queue.
    """

    scheduled: int
    more_scheduled: bool
    next_due: datetime | None
    fence_age: float | None
    depth: Depth
    dead: int


def overview(
    queue: QueueSettings,
    *,
    table: Table,
    own: Queue,
    dead_letters: Queue,
    lookahead: timedelta,
    now: datetime,
    spread: Spread = map,
) -> Overview:
    """Tell how a queue is doing, at a cost that does not grow with what is scheduled beyond 1,000 jobs.

    What SQS tells is an estimate of its own. Raises QueueNotFound when the queue or its dead-letter queue is not on
    SQS, Throttled or Unavailable.
    """
    states = read_states(queue, table=table, spread=spread)
    snapshot = Snapshot(queue=queue, table=table, states=states, now=now)
    counted = scan(Span(limit=MOST_COUNTED), snapshot=snapshot, spread=spread)
    depth, dead = _depth(queue, own), _depth(queue, dead_letters).waiting
    return Overview(
        scheduled=len(counted.jobs),
        more_scheduled=counted.after is not None,
        next_due=counted.jobs[0].id.due if counted.jobs else None,
        fence_age=_fence_age(queue, states, lookahead=lookahead, now=now),
        depth=depth,
        dead=dead,
    )


def _depth(queue: QueueSettings, of: Queue) -> Depth:
    try:
        return of.depth()
    except QueueNotFound:
        raise QueueNotFound(f"queue {queue.name!r} is not there yet, or was deleted") from None


def _fence_age(queue: QueueSettings, states: Mapping[Key, Row], *, lookahead: timedelta, now: datetime) -> float | None:
    fences = [rows.read_state(states.get(rows.state_key(partition))).fence for partition in partitions_of(queue)]
    if not all(fences):
        return None
    return max(0.0, (now + lookahead - instant.parse(min(fences))).total_seconds())
