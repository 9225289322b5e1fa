"""Waiting for what must come."""

import time
from collections.abc import Callable, Iterator
from itertools import repeat

# What is waited for comes in seconds, or in a minute on a slow machine that does much else: only a hang takes so long.
HANG_SECONDS = 300.0


def wait_until(met: Callable[[], bool], *, seconds: float = HANG_SECONDS, every: float | None = None) -> bool:
    """Wait until a condition is met, so long at most; return whether it was.

    Ask `every` so many seconds, or else soon, and then less and less often: to ask a deployed function takes CPU.
    """
    deadline = time.monotonic() + seconds
    pauses = _longer_and_longer() if every is None else repeat(every)
    while not met():
        if time.monotonic() > deadline:
            return False
        time.sleep(next(pauses))
    return True


def _longer_and_longer() -> Iterator[float]:
    pause = 0.05
    while True:
        yield pause
        pause = min(0.5, pause * 1.3)
