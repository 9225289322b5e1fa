"""Receive messages from the levels of a queue, the most urgent first."""

import math
from collections.abc import Sequence

from dueline.model.message import BATCH_MESSAGES
from dueline.worker.claim import Claim
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Report, trouble

# Short enough for a worker to end soon after it is stopped.
LONG_POLL_SECONDS = 5
# Of several levels only one can be polled at a time: a message of another waits for so long.
_LONG_POLL_OF_LEVELS_SECONDS = 1
# A claim is counted from before its request, so a long wait shortens it: by a sixth at most.
_POLLS_A_CLAIM = 6
# A level that fails while others have messages is reported no more often.
_REPORT_SECONDS = 10.0
# One turn in so many begins with a lower level, so that none is starved.
FLOOR_TURNS = 10


class Receiver:
    """Asks the levels of a queue in turn."""

    def __init__(self, connection: QueueConnection, *, report: Report) -> None:
        self._connection = connection
        self._report = report
        self._turns = 0
        self._reported = -math.inf

    def receive(self, *, most: int) -> list[Claim]:
        """Return the claims on up to `most` messages of the first level that has some; if none has, poll for a while.

        A level that fails does not keep the others from being asked. Raises QueueNotFound, Throttled or Unavailable
        when one failed and no other had messages.
        """
        order = order_of(len(self._connection.settings.urls), turn=self._turns)
        self._turns += 1
        if len(order) == 1:
            return self._receive_from(order[0], most, wait=self._poll_seconds(LONG_POLL_SECONDS))
        faults = []
        for level in order:
            try:
                claims = self._receive_from(level, most, wait=0)
            except Exception as fault:
                faults.append(fault)
                continue
            if claims:
                self._report_faults(faults)
                return claims
        for first in faults:
            raise first
        return self._receive_from(0, most, wait=_LONG_POLL_OF_LEVELS_SECONDS)

    def _report_faults(self, faults: Sequence[Exception]) -> None:
        now = self._connection.clock.monotonic()
        if not faults or now - self._reported < _REPORT_SECONDS:
            return
        self._reported = now
        for fault in faults:
            self._report(trouble(fault, queue=self._connection.queue, what="a level was not polled"))

    def _poll_seconds(self, seconds: int) -> int:
        return max(1, min(seconds, self._connection.settings.visibility_timeout // _POLLS_A_CLAIM))

    def _receive_from(self, level: int, most: int, *, wait: int) -> list[Claim]:
        asked, hidden = self._connection.clock.monotonic(), self._connection.settings.visibility_timeout
        # Sent each time: SQS must hide messages for as long as is counted here, whatever the queue's own timeout is.
        arrivals = self._connection.levels[level].receive(most=min(most, BATCH_MESSAGES), wait=wait, hidden=hidden)
        return [Claim(arrival=each, level=level, received=asked, visible=asked + hidden) for each in arrivals]


def order_of(levels: int, *, turn: int) -> list[int]:
    """Return the order in which to ask the levels in a turn, both counted from 0.

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
