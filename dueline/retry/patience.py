"""Patience: how long to retry, with exponential backoff and full jitter."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dueline.errors import DuelineError
from dueline.ports import Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How a client retries: at most `attempts` in all, and none begun more than `seconds` after the first.

    The wait before a retry is random (full jitter). Its upper limit is `first_wait` seconds before the second attempt,
    doubles with each attempt, and never exceeds `longest_wait`. What the API asks for by Retry-After comes on top.
    """

    attempts: int = 6
    seconds: float = 30.0
    first_wait: float = 0.1
    longest_wait: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}: it must be at least 1")
        for name in ("seconds", "first_wait", "longest_wait"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 0")

    def wait_at_most(self, tried: int) -> float:
        """Return the upper limit of the wait after that many attempts, in seconds.

        >>> [Patience().wait_at_most(tried) for tried in (1, 2, 3, 7, 10_000)]
        [0.1, 0.2, 0.4, 5.0, 5.0]
        """
        # 2^64 is past any sensible limit; beyond 2^1023 a float has no number for it.
        return min(self.longest_wait, self.first_wait * 2.0 ** min(tried - 1, 64))


# How long, in seconds, a wait may go on after nobody wants the result any more.
_HEEDED_SECONDS = 0.5


class Waits:
    """The waits between the attempts of one call, the first of which begins now. `jitter` returns 0 up to 1.

    `since` (monotonic) is when the time that `patience` allows began, by default now. `ended` is set once nobody wants
    the result.
    """

    def __init__(
        self,
        patience: Patience,
        *,
        clock: Clock,
        jitter: Callable[[], float],
        since: float | None = None,
        ended: threading.Event | None = None,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._jitter = jitter
        self._ended = ended
        self._tried = 1
        self._until = (clock.monotonic() if since is None else since) + patience.seconds

    def wait(self, errors: Iterable[DuelineError]) -> bool:
        """Wait before the next attempt, after these errors; return False at once if there is to be none.

        Return False within half a second, too, once nobody wants the result.
        """
        seconds = self.before_next(errors)
        return seconds is not None and self._slept(seconds)

    def before_next(self, errors: Iterable[DuelineError]) -> float | None:
        """Return how many seconds to wait before the next attempt, after these errors; None if there is to be none."""
        if self._tried >= self._patience.attempts:
            return None
        asked = max((error.retry_after or 0.0 for error in errors), default=0.0)
        wait = asked + self._jitter() * self._patience.wait_at_most(self._tried)
        if self._clock.monotonic() + wait > self._until:
            return None
        self._tried += 1
        return wait

    def _slept(self, seconds: float) -> bool:
        if self._ended is None:
            self._clock.sleep(seconds)
            return True
        while seconds > 0 and not self._ended.is_set():
            self._clock.sleep(min(seconds, _HEEDED_SECONDS))
            seconds -= _HEEDED_SECONDS
        return not self._ended.is_set()
