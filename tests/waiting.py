"""Wait for a condition in a test."""

import time
from collections.abc import Callable, Iterator
from itertools import repeat

from dueline.core.retry import Patience

# Conditions hold in seconds, or in a minute on a slow, busy machine: only a hang takes so long.
HANG_SECONDS = 300.0
# For clients of a local AWS, which on a slow, busy machine may not answer a first request for half a minute.
PATIENT = Patience(attempts=20, seconds=HANG_SECONDS)


def wait_until(holds: Callable[[], bool], *, seconds: float = HANG_SECONDS, every: float | None = None) -> bool:
    """Wait until a condition is met, at most `seconds`; return whether it was.

    Check it `every` so many seconds, by default after 5 ms, then less and less often: a check may cost CPU.
    """
    deadline = time.monotonic() + seconds
    pauses = _growing_pauses() if every is None else repeat(every)
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(next(pauses))
    return True


def _growing_pauses() -> Iterator[float]:
    pause = 0.005
    while True:
        yield pause
        pause = min(0.5, pause * 1.3)
