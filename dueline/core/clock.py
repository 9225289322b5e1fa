"""Clocks: this machine's, and how far it is off another that shows whole seconds only."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Below that, the time that a request takes is more than another one adds.
WELL_KNOWN_SECONDS = 0.02
# A machine's clock that went so much further, or less far, than its monotonic one was set, or the machine slept.
_STEP_SECONDS = 0.5
# Of the year 5138. A later date is a mistake, and with anything added may be more than a datetime holds.
_LATEST_SECOND = 1e11


@dataclass(frozen=True, kw_only=True, slots=True)
class Skew:
    """By how many seconds the other clock is ahead of this one: somewhere between `low` and `high`."""

    low: float = -math.inf
    high: float = math.inf

    def learned(self, second: float, *, sent: float, received: float) -> "Skew":
        """Return what is known after the other clock answered the whole `second`, requested at `sent`, by `received`.

        If that contradicts what was known before, a clock was set: then only the new answer counts.
        """
        low, high = second - received, second + 1 - sent
        narrower = Skew(low=max(low, self.low), high=min(high, self.high))
        return narrower if narrower.low < narrower.high else Skew(low=low, high=high)

    @property
    def behind(self) -> float:
        """By how many seconds the corrected time is behind the other clock at most; infinite if unknown.

        >>> Skew(low=-0.5, high=0.25).behind
        0.75
        """
        return self.high - self.low

    def next_look(self, now: float) -> float | None:
        """Return when, by the local clock, to request the other's time next; None if it is known well enough.

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


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeBounds:
    """What another clock shows now, from `earliest` to `latest`: a second apart at first, less with each answer."""

    earliest: datetime
    latest: datetime


class LearnedTime:
    """Another clock's time, learned from the Date of its answers. Threads may share it.

    It is counted by this machine's monotonic clock, which is never set, but stands still while the machine sleeps: once
    that and the `wall` clock went differently far, nothing is known until the next answer.
    """

    def __init__(self, *, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._latest = Skew(), 0.0

    def sent(self) -> tuple[float, float]:
        """Return what `learn` needs to know of the moment at which a request is sent."""
        now = self._monotonic()
        return now, self._wall() - now

    def learn(self, date: str, *, sent: tuple[float, float]) -> None:
        received, ahead = self.sent()
        try:
            second = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        if abs(ahead - sent[1]) < _STEP_SECONDS and abs(second) < _LATEST_SECOND:
            self._latest = self._skew_at(ahead).learned(second, sent=sent[0], received=received), ahead

    @property
    def skew(self) -> Skew:
        """By how much the other clock is ahead of this machine's monotonic one."""
        return self._skew_at(self.sent()[1])

    def moment(self) -> TimeBounds | None:
        """Return what the other clock shows; None before the first answer, and after this machine's clock was set."""
        now, ahead = self.sent()
        skew = self._skew_at(ahead)
        if not math.isfinite(skew.low):
            return None
        earliest, latest = datetime.fromtimestamp(now + skew.low, UTC), datetime.fromtimestamp(now + skew.high, UTC)
        return TimeBounds(earliest=earliest, latest=latest)

    def _skew_at(self, ahead: float) -> Skew:
        skew, before = self._latest
        return skew if abs(ahead - before) < _STEP_SECONDS else Skew()


class SystemClock:
    """Time as the operating system has it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
