"""Waiting for what must come."""

import time
from collections.abc import Callable

# What is waited for comes in seconds, or in a minute on a slow machine that does much else: only a hang takes so long.
HANG_SECONDS = 300.0


def wait_until(met: Callable[[], bool], *, seconds: float = HANG_SECONDS, every: float = 0.1) -> bool:
    """Wait until a condition is met, so long at most; return whether it was."""
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True
