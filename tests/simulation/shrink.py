"""Make a failing run short: take back every decision that it does not need."""

from collections.abc import Callable

from tests.simulation.choices import Decided

Breaks = Callable[[Decided], bool]


def shrink(decided: Decided, breaks: Breaks) -> Decided:
    """Return the fewest decisions found that still break the promise; take back half of them first, then less."""
    kept = sorted(decided.items())
    size = len(kept)
    while size:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if breaks(dict(fewer)):
                kept = fewer
            else:
                start += size
        size //= 2
    return _lowered(dict(kept), breaks)


def _lowered(decided: Decided, breaks: Breaks) -> Decided:
    """Return the same decisions, each as near to the harmless one as it may be."""
    lowered = dict(decided)
    for key, value in decided.items():
        for less in range(1, value):
            if breaks({**lowered, key: less}):
                lowered[key] = less
                break
    return lowered
