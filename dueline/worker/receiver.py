"""Receive from the levels of a queue, as many messages as can run."""

import math
from collections.abc import Sequence

from dueline.model.message import BATCH_MESSAGES
from dueline.worker.claim import Claim
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Report, trouble

# Short enough for a worker to end soon when it is told to.
LONG_POLL_SECONDS = 5
# What comes to another level is asked for then.
_LONG_POLL_OF_LEVELS_SECONDS = 1
# A claim is counted from before the request that got it, so a long wait takes from it.
_POLLS_A_CLAIM = 6
# Of a level that fails while others have messages is told this seldom.
_TELL_SECONDS = 10.0
# One turn in so many begins with a lower level, so that none waits for ever.
FLOOR_TURNS = 10


class Receiver:
    """Asks the levels of a queue in turn."""

    def __init__(self, connection: QueueConnection, *, report: Report) -> None:
        self._connection = connection
        self._report = report
        self._turns = 0
        self._told = -math.inf

    def receive(self, *, most: int) -> list[Claim]:
        """Return the claims on up to `most` messages of the first level that has some; wait a little for the first.

        A level that fails keeps nothing from the others. Raises QueueNotFound, Throttled or Unavailable when one did
        and none had any.
        """
        order = order_of(len(self._connection.settings.urls), turn=self._turns)
        self._turns += 1
        if len(order) == 1:
            return self._from(order[0], most, wait=self._patience(LONG_POLL_SECONDS))
        faults = []
        for level in order:
            try:
                claims = self._from(level, most, wait=0)
            except Exception as fault:
                faults.append(fault)
                continue
            if claims:
                self._tell(faults)
                return claims
        for first in faults:
            raise first
        return self._from(0, most, wait=_LONG_POLL_OF_LEVELS_SECONDS)

    def _tell(self, faults: Sequence[Exception]) -> None:
        now = self._connection.clock.monotonic()
        if not faults or now - self._told < _TELL_SECONDS:
            return
        self._told = now
        for fault in faults:
            self._report(trouble(fault, queue=self._connection.queue, what="a level was not asked"))

    def _patience(self, seconds: int) -> int:
        return max(1, min(seconds, self._connection.settings.visibility_timeout // _POLLS_A_CLAIM))

    def _from(self, level: int, most: int, *, wait: int) -> list[Claim]:
        asked, hidden = self._connection.clock.monotonic(), self._connection.settings.visibility_timeout
        # Said each time, so that SQS hides it for as long as is counted here, whatever the queue says by now.
        arrivals = self._connection.levels[level].receive(most=min(most, BATCH_MESSAGES), wait=wait, hidden=hidden)
        return [Claim(arrival=each, level=level, received=asked, visible=asked + hidden) for each in arrivals]


def order_of(levels: int, *, turn: int) -> list[int]:
    """Return the levels in the order in which to ask them in the so-manieth turn, each counted from 0.

    The most urgent comes first, but in every tenth turn one of the others, each when it is its turn.

    >>> [order_of(3, turn=turn) for turn in (0, 9, 19)]
    [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    """
    order = list(range(levels))
    if levels > 1 and turn % FLOOR_TURNS == FLOOR_TURNS - 1:
        first = 1 + (turn // FLOOR_TURNS) % (levels - 1)
        order.remove(first)
        order.insert(0, first)
    return order
