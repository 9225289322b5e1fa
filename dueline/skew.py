"""Skew: how far this machine's clock is off another's, which tells its time in whole seconds only."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Skew:
    """What is known of the seconds by which the other clock is ahead of this one: they lie between `low` and `high`."""

    low: float = -math.inf
    high: float = math.inf

    def learned(self, told: float, *, sent: float, received: float) -> "Skew":
        """Return what is known after the other clock told the whole second `told`, asked at `sent`, by `received`.

        What contradicts all that was known before means that a clock was set: only the new counts.
        """
        low, high = told - received, told + 1 - sent
        narrower = Skew(low=max(low, self.low), high=min(high, self.high))
        return narrower if narrower.low < narrower.high else Skew(low=low, high=high)

    @property
    def correction(self) -> float:
        """The seconds to add to the local time for one that the other clock has reached for certain; 0 if unknown.

        >>> Skew(low=-5.2, high=-4.9).correction
        -5.2
        """
        return self.low if math.isfinite(self.low) else 0.0
