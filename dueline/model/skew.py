"""Skew: how far this machine's clock is off another's, which shows whole seconds only."""

import math
from dataclasses import dataclass

# Below that, the time that a request takes is more than what another one tells.
WELL_KNOWN_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Skew:
    """By how many seconds the other clock is ahead of this one: somewhere between `low` and `high`."""

    low: float = -math.inf
    high: float = math.inf

    def learned(self, second: float, *, sent: float, received: float) -> "Skew":
        """Return what is known after the other clock answered the whole `second`, asked at `sent`, by `received`.

        If that contradicts what was known before, a clock was set: then only the new answer counts.
        """
        low, high = second - received, second + 1 - sent
        narrower = Skew(low=max(low, self.low), high=min(high, self.high))
        return narrower if narrower.low < narrower.high else Skew(low=low, high=high)

    @property
    def correction(self) -> float:
        """The seconds to add to the local time for one that the other clock has reached for certain; 0 if unknown.

        >>> Skew(low=-5.2, high=-4.9).correction
        -5.2
        """
        return self.low if math.isfinite(self.low) else 0.0

    @property
    def behind(self) -> float:
        """By how many seconds the corrected time is behind the other clock at most; infinite if unknown.

        >>> Skew(low=-0.5, high=0.25).behind
        0.75
        """
        return self.high - self.low

    def next_look(self, now: float) -> float | None:
        """Return when, by the local clock, to ask the other for its time next; None if it is known well enough.

        That is when the other's second would change if the skew were midway between `low` and `high`. Each answer
        halves the range.

        >>> Skew(low=-0.5, high=0.25).next_look(100.0)
        100.125
        """
        if not math.isfinite(self.low):
            return now
        if self.high - self.low <= WELL_KNOWN_SECONDS:
            return None
        middle = (self.low + self.high) / 2
        return math.ceil(now + middle) - middle
