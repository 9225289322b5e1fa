"""How the jobs of a handler are retried, beside the handler."""

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from dueline.core.queue_settings import LONGEST_HIDDEN_SECONDS, MOST_RECEIVES, RetryPolicy, WorkSettings
from dueline.core.text import shown

_MOST_FACTOR = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """How the jobs of a handler are retried. What is not given is as the queue's retry policy in queues.yaml says.

    A job has `attempts` in all. It waits `first` after the first one, each time `factor` times as long, and `most` at
    most: seconds, rounded up to whole ones, or timedeltas. Delays that grow have jitter: each is between half of its
    length and all of it. Without a factor, they grow as the policy's do. Raises ValueError.
    """

    attempts: int | None = None
    first: float | timedelta | None = None
    factor: float | None = None
    most: float | timedelta | None = None

    def __post_init__(self) -> None:
        if self.attempts is not None and not (type(self.attempts) is int and 1 <= self.attempts <= MOST_RECEIVES):
            raise ValueError(f"attempts is {shown(self.attempts)}: it must be a whole number from 1 to {MOST_RECEIVES}")
        if self.factor is not None and not (type(self.factor) in (int, float) and 1 <= self.factor <= _MOST_FACTOR):
            raise ValueError(f"factor is {shown(self.factor)}: it must be a number from 1 to {_MOST_FACTOR}")
        for name in ("first", "most"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, math.ceil(checked_seconds(name, getattr(self, name), least=1)))
        if self.most is not None and self.first is not None and self.most < self.first:  # type: ignore[operator]
            raise ValueError(f"most is {self.most} seconds: it must be at least first, which is {self.first}")

    def attempts_of(self, settings: WorkSettings) -> int:
        """Return how many attempts a job has: SQS itself moves a message after `max_receives`."""
        return settings.attempts if self.attempts is None else min(self.attempts, settings.max_receives)

    def delay_after(self, attempt: int, *, policy: RetryPolicy, jitter: float) -> int:
        """Return the seconds to wait before the next attempt, after `attempt` failed ones; `jitter` is 0 to 1.

        >>> retries = Retries(first=2, factor=3, most=60)
        >>> [retries.delay_after(attempt, policy=RetryPolicy(), jitter=1) for attempt in range(1, 6)]
        [2, 6, 18, 54, 60]
        """
        first, most = self._limits(policy)
        if self.factor is None:
            attempts = self.attempts or policy.attempts
            longer = replace(policy, attempts=attempts, delay=first, max_delay=most)
            return longer.delay_after(attempt, jitter=jitter)
        # By logarithms: a float has no room for a high power.
        is_longest = math.log(first) + (attempt - 1) * math.log(self.factor) >= math.log(most)
        whole = most if is_longest else math.ceil(first * self.factor ** (attempt - 1))
        return max(1, round(whole / 2 * (1 + jitter))) if attempt > 1 and self.factor > 1 else whole

    def _limits(self, policy: RetryPolicy) -> tuple[int, int]:
        """Return the first and the longest delay. What is given here outweighs what the policy has of the other."""
        first: Any = self.first
        most: Any = self.most
        if most is None:
            most = max(policy.max_delay, first or 0)
        return (min(policy.delay, most) if first is None else first), most


BY_POLICY = Retries()


def checked_seconds(name: str, value: object, *, least: float) -> float:
    """Return seconds that a caller gives as a number or a timedelta. Raises ValueError beyond what SQS can hide."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_number = type(seconds) is int or isinstance(seconds, float)
    if is_number and least <= seconds <= LONGEST_HIDDEN_SECONDS:  # type: ignore[operator]
        return float(seconds)  # type: ignore[arg-type]
    must = f"it must be from {least:g} to {LONGEST_HIDDEN_SECONDS} seconds, or a timedelta"
    raise ValueError(f"{name} is {shown(value)}: {must}")
