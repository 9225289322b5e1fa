"""Receive messages from the levels of a queue, and prepare their jobs."""

from collections.abc import Sequence
from typing import Any

from dueline.core.cancel import cancelled_among
from dueline.core.message import BATCH_MESSAGES
from dueline.worker.delivery import EventKind, ReceivedMessage
from dueline.worker.queue_context import QueueContext

# Short enough for a worker to end soon after it is stopped.
LONG_POLL_SECONDS = 5
# Of several levels only one can be polled at a time: a message of another waits for so long.
_LONG_POLL_OF_LEVELS_SECONDS = 1
# A claim is counted from before its request, so a long wait shortens it: by a sixth at most.
_POLLS_A_CLAIM = 6
# A level that fails is not polled again for so long, while others are.
_REST_SECONDS = 5.0
# One turn in so many begins with a lower level, so that none is starved.
FLOOR_TURNS = 10


class Receiver:
    """Receives messages from the levels of a queue. `heartbeat` is when it last polled, on the monotonic clock.

    What uses it and hangs leaves the heartbeat behind.
    """

    def __init__(self, context: QueueContext) -> None:
        self._context = context
        self._turns = 0
        # Of each level that failed: the fault, and until when it is not polled (monotonic).
        self._rests: dict[int, tuple[Exception, float]] = {}
        self.beat()

    def beat(self) -> None:
        self.heartbeat = self._context.clock.monotonic()

    def receive(self, *, most: int) -> list[ReceivedMessage]:
        """Return up to `most` messages of the first level that has some; if none has, poll for a while.

        A level that fails is reported, and rests while the others are polled. Raises QueueNotFound, Throttled or
        Unavailable when all fail.
        """
        order = order_of(len(self._context.settings.urls), turn=self._turns)
        self._turns += 1
        if len(order) == 1:
            longest = self._context.settings.visibility_timeout // _POLLS_A_CLAIM
            return self._receive_from(order[0], most, wait=max(1, min(LONG_POLL_SECONDS, longest)))
        for level in order:
            is_resting = level in self._rests and self._context.clock.monotonic() < self._rests[level][1]
            if not is_resting and (claims := self._try(level, most, wait=0)):
                return claims
        healthy = sorted(set(order) - self._rests.keys())
        if healthy:
            return self._try(healthy[0], most, wait=_LONG_POLL_OF_LEVELS_SECONDS)
        fault, _ = self._rests[order[0]]
        # The caller waits before the next try, which is at all levels.
        self._rests.clear()
        raise fault

    def _try(self, level: int, most: int, *, wait: int) -> list[ReceivedMessage]:
        """Return messages of a level; if it fails, let it rest."""
        try:
            claims = self._receive_from(level, most, wait=wait)
        except Exception as fault:
            self._rests[level] = fault, self._context.clock.monotonic() + _REST_SECONDS
            self._context.report_error(fault, f"priority {level + 1} was not polled")
            return []
        self._rests.pop(level, None)
        return claims

    def _receive_from(self, level: int, most: int, *, wait: int) -> list[ReceivedMessage]:
        self.beat()
        now, hidden = self._context.clock.monotonic(), self._context.settings.visibility_timeout
        # Sent each time: SQS must hide messages for as long as is counted here, whatever the queue's own timeout is.
        arrivals = self._context.levels[level].receive(most=min(most, BATCH_MESSAGES), wait=wait, hidden=hidden)
        of: dict[str, Any] = {"queue": self._context.queue, "level": level, "received": now, "visible": now + hidden}
        return [ReceivedMessage(arrival=each, **of) for each in arrivals]


def order_of(levels: int, *, turn: int) -> list[int]:
    """Return the order in which to poll the levels in a turn, both counted from 0.

    The most urgent comes first, but in every tenth turn one of the others, which alternate.

    >>> [order_of(3, turn=turn) for turn in (0, 9, 19)]
    [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    """
    order = list(range(levels))
    if levels > 1 and turn % FLOOR_TURNS == FLOOR_TURNS - 1:
        first = 1 + (turn // FLOOR_TURNS) % (levels - 1)
        order.remove(first)
        order.insert(0, first)
    return order


def prepare(batch: Sequence[ReceivedMessage], context: QueueContext) -> list[ReceivedMessage]:
    """Read the jobs of a received batch, and which of them were cancelled, in one request for up to 100.

    Return those that are ready to run. The others are `cancelled` or `dead` from now on, and reported as that. Raises
    Throttled or Unavailable: then none may run, and all are to be prepared again.
    """
    # Counted from before the request.
    cancellation_read = context.clock.monotonic()
    readable = [each for each in batch if each.read().dead is None]
    ids = {each.job.id for each in readable if each.job}
    cancelled_ids = cancelled_among(ids, table=context.table) if ids else set()
    for each in readable:
        each.cancellation_read = cancellation_read
        each.cancelled = each.job is not None and each.job.id in cancelled_ids
        if each.cancelled:
            context.report(each.event(EventKind.SKIPPED))
    for each in batch:
        if each.dead:
            context.report(each.event(EventKind.FAILED, error=each.dead.error, reason=each.dead.reason))
    return [each for each in readable if not each.cancelled]


def seconds_until_due(received: ReceivedMessage, context: QueueContext) -> float:
    """Return how many seconds a worker must hold a job back: 0 unless its queue is precise.

    SQS delivers the jobs of a precise queue up to a second early, and holds back those of other queues itself.
    """
    if not context.settings.queue.precise:
        return 0.0
    return max(0.0, (received.due - context.clock.now()).total_seconds())
