"""Waiting for jobs to land, and telling how far it is."""

import time
from collections.abc import Collection
from pathlib import Path

from bench.lateness import record
from bench.lateness.plan import Scheduled
from bench.part import Progress

# Whoever has not landed by then is lost.
LATEST_SECONDS = 60.0
# What comes twice comes soon after.
_REPEAT_SECONDS = 2.0


def wait_for(until: float, what: str, progress: Progress, *, scheduled: Scheduled) -> None:
    """Wait for an instant (since 1970), and tell how far the way to the last job is gone."""
    while (now := time.time()) < until:
        progress(what, max(0, round(now - scheduled.begin)), round(scheduled.last - scheduled.begin))
        time.sleep(min(1.0, max(0.0, until - now)))


def wait_for_the_last(
    what: str, progress: Progress, *, scheduled: Scheduled, written: Path, but: Collection[int] = ()
) -> None:
    """Wait until all have landed `but` those, for 60 s after the last is due at most, and a little longer."""
    wait_for(scheduled.last, what, progress, scheduled=scheduled)
    expected = scheduled.dues.keys() - set(but)
    while time.time() < scheduled.last + LATEST_SECONDS:
        missing = expected - {each.number for each in record.read(written)}
        progress(f"{what}: the last", len(expected) - len(missing), len(expected))
        if not missing:
            break
        time.sleep(0.5)
    time.sleep(_REPEAT_SECONDS)
