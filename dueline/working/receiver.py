"""Receive from the levels of a queue, as many messages as can run."""

from dueline.message import BATCH_MESSAGES
from dueline.working.claim import Claim
from dueline.working.levels import order_of
from dueline.working.place import Place

# Short enough for a worker to end soon when it is told to.
LONG_POLL_SECONDS = 5
# What comes to another level is asked for then.
_LONG_POLL_OF_LEVELS_SECONDS = 1
# A claim is counted from before the request that got it, so a long wait takes from it.
_POLLS_A_CLAIM = 6


class Receiver:
    """Asks the levels of a queue in turn."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._turns = 0

    def receive(self, *, most: int) -> list[Claim]:
        """Return the claims on up to `most` messages of the first level that has some; wait a little for the first.

        Raises QueueNotFound, Throttled or Unavailable.
        """
        order = order_of(len(self._place.levels), turn=self._turns)
        self._turns += 1
        if len(order) == 1:
            return self._from(order[0], most, wait=self._patience(LONG_POLL_SECONDS))
        for level in order:
            if claims := self._from(level, most, wait=0):
                return claims
        return self._from(0, most, wait=_LONG_POLL_OF_LEVELS_SECONDS)

    def _patience(self, seconds: int) -> int:
        return max(1, min(seconds, self._place.settings.visibility_timeout // _POLLS_A_CLAIM))

    def _from(self, level: int, most: int, *, wait: int) -> list[Claim]:
        asked = self._place.clock.monotonic()
        visible = asked + self._place.settings.visibility_timeout
        arrivals = self._place.levels[level].receive(most=min(most, BATCH_MESSAGES), wait=wait)
        return [Claim(arrival=each, level=level, received=asked, visible=visible) for each in arrivals]
