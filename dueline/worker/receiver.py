"""Receive from the levels of a queue, as many messages as can run."""

import math
from collections.abc import Sequence

from dueline.model.message import BATCH_MESSAGES
from dueline.worker.connection import Place
from dueline.worker.delivery import Claim
from dueline.worker.levels import order_of
from dueline.worker.watch.event import Report, trouble

# Short enough for a worker to end soon when it is told to.
LONG_POLL_SECONDS = 5
# What comes to another level is asked for then.
_LONG_POLL_OF_LEVELS_SECONDS = 1
# A claim is counted from before the request that got it, so a long wait takes from it.
_POLLS_A_CLAIM = 6
# Of a level that fails while others have messages is told this seldom.
_TELL_SECONDS = 10.0


class Receiver:
    """Asks the levels of a queue in turn."""

    def __init__(self, place: Place, *, report: Report) -> None:
        self._place = place
        self._report = report
        self._turns = 0
        self._told = -math.inf

    def receive(self, *, most: int) -> list[Claim]:
        """Return the claims on up to `most` messages of the first level that has some; wait a little for the first.

        A level that fails keeps nothing from the others. Raises QueueNotFound, Throttled or Unavailable when one did
        and none had any.
        """
        order = order_of(len(self._place.settings.urls), turn=self._turns)
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
        now = self._place.clock.monotonic()
        if not faults or now - self._told < _TELL_SECONDS:
            return
        self._told = now
        for fault in faults:
            self._report(trouble(fault, queue=self._place.queue, what="a level was not asked"))

    def _patience(self, seconds: int) -> int:
        return max(1, min(seconds, self._place.settings.visibility_timeout // _POLLS_A_CLAIM))

    def _from(self, level: int, most: int, *, wait: int) -> list[Claim]:
        asked, hidden = self._place.clock.monotonic(), self._place.settings.visibility_timeout
        # Said each time, so that SQS hides it for as long as is counted here, whatever the queue says by now.
        arrivals = self._place.levels[level].receive(most=min(most, BATCH_MESSAGES), wait=wait, hidden=hidden)
        return [Claim(arrival=each, level=level, received=asked, visible=asked + hidden) for each in arrivals]
