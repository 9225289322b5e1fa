"""The limits that AWS sets, as arithmetic."""

import math


class Allowance:
    """So many units a second (a token bucket), of which `burst_seconds` are kept where they are not used."""

    def __init__(self, rate: float, *, burst_seconds: float) -> None:
        self.rate = rate
        self._most = rate * burst_seconds
        self._left, self._at = self._most, 0.0

    def take(self, units: float, *, now: float) -> bool:
        """Take all of so many units, or none; tell whether they were there."""
        self._left = min(self._most, self._left + (now - self._at) * self.rate)
        self._at = now
        if units > self._left:
            return False
        self._left -= units
        return True


def minutes_to_reach(rate: float, *, first: float, doubling_minutes: float) -> float:
    """Return after how many minutes a table that takes `first` units a second, and doubles, takes `rate`.

    >>> minutes_to_reach(16_000, first=4_000, doubling_minutes=30)
    60.0
    """
    return max(0.0, math.log2(rate / first)) * doubling_minutes


def write_units(row_bytes: int) -> int:
    """Return the write units of a row of that size."""
    return -(-row_bytes // 1024)


def read_units(size: int) -> int:
    """Return the read units of a consistent read of so many bytes.

    Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return max(1, -(-size // 4096))
