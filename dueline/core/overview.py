"""Overview: how a queue is doing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import call

from dueline.core import instant, rows
from dueline.core.listing import Snapshot, Span, read_states, scan
from dueline.core.ports import Depth, ParallelMap, Queue, Table
from dueline.core.queue_settings import QueueSettings, Rate, not_there
from dueline.core.rows import Key, Row, paused_key, rate_key
from dueline.errors import InvalidJob, QueueNotFound, Unavailable

MOST_COUNTED = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """Whether a queue is paused, and the rate of all its workers together; None is no limit.

    `rate_set` is when the rate was set, as text: the slots of a rate that is set again begin again. It is "" in answers
    of the HTTP API.
    """

    paused: bool = False
    rate: Rate | None = None
    rate_set: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether its workers may begin no job at all: it is paused, or its rate is 0."""
        return self.paused or (self.rate is not None and self.rate.jobs == 0)


def read_control(queue: str, *, table: Table, consistent: bool = False) -> Control:
    """Return a queue's pause and rate. Raises Throttled or Unavailable."""
    reading = table.read([paused_key(queue), rate_key(queue)], consistent=consistent)
    return control_among(reading.whole(f"the pause and rate of queue {queue!r}"), queue)


def control_among(existing: Mapping[Key, Row], queue: str) -> Control:
    """Return a queue's pause and rate, as its rows have them.

    Raises Unavailable when its rate cannot be read: no limit is no guess to make.
    """
    paused, limit = existing.get(paused_key(queue)), existing.get(rate_key(queue), {"at": ""})
    try:
        rate = Rate.parse(str(limit["rate"])) if "rate" in limit else None
        return Control(paused=bool(paused and paused["paused"]), rate=rate, rate_set=str(limit["at"]))
    except (InvalidJob, KeyError) as error:
        raise Unavailable(f"row {rate_key(queue)} cannot be read: {error}") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """How a queue is doing: how many of its jobs are scheduled, in its SQS queues, and in its dead-letter queue.

    `scheduled` is counted up to 1,000; `more_scheduled` says that there may be more. `next_due` is when the earliest of
    them is due. `fence_age` is how many seconds ago the partition that is furthest behind was last read by a tick; None
    until each was read once. `levels` are the depths of its SQS queues, that of priority 1 first. `dead` is how many
    jobs are in its dead-letter queue. `control` is its pause and rate.
    """

    scheduled: int
    more_scheduled: bool
    next_due: datetime | None
    fence_age: float | None
    levels: tuple[Depth, ...]
    dead: int
    control: Control = field(default_factory=Control)

    @property
    def depth(self) -> Depth:
        """The depth of all its SQS queues together."""
        return reduce(Depth.__add__, self.levels)


def overview(
    queue: QueueSettings,
    *,
    table: Table,
    level: Callable[[int], Queue],
    dead_letters: Queue,
    lookahead: timedelta,
    now: datetime,
    spread: ParallelMap = map,
) -> Overview:
    """Return how a queue is doing, at a cost that does not grow with what is scheduled beyond 1,000 jobs.

    `level` returns its SQS queue of a priority. The depths are SQS's estimates. Raises QueueNotFound when one of its
    SQS queues or the dead-letter queue is missing, Throttled or Unavailable.
    """
    states = read_states(queue, table=table, spread=spread)
    snapshot = Snapshot(queue=queue, table=table, states=states, now=now)
    counted = scan(Span(limit=MOST_COUNTED), snapshot=snapshot, spread=spread)
    rows.log_unreadable(counted.unreadable)
    reads = [partial(_depth, queue, level(number), priority=number) for number in range(1, queue.priorities + 1)]
    *levels, dead = spread(call, [*reads, partial(_depth, queue, dead_letters)])
    return Overview(
        scheduled=len(counted.rows),
        more_scheduled=counted.after is not None,
        next_due=rows.read_job(counted.rows[0]).id.due if counted.rows else None,
        fence_age=_fence_age(queue, states, lookahead=lookahead, now=now),
        levels=tuple(levels),
        dead=dead.waiting,
        control=read_control(queue.name, table=table, consistent=True),
    )


def _depth(queue: QueueSettings, of: Queue, *, priority: int = 1) -> Depth:
    try:
        return of.depth()
    except QueueNotFound:
        raise not_there(queue, priority=priority) from None


def _fence_age(queue: QueueSettings, states: Mapping[Key, Row], *, lookahead: timedelta, now: datetime) -> float | None:
    fences = [rows.read_state(states.get(rows.state_key(partition))).fence for partition in queue.all_partitions()]
    if not all(fences):
        return None
    return max(0.0, (now + lookahead - instant.parse(min(fences))).total_seconds())
