"""Times as people read them."""

from datetime import datetime, timedelta

# Up to so many seconds, in units of so many.
_UNITS = ((90, 1, "s"), (90 * 60, 60, "min"), (36 * 3600, 3600, "h"), (float("inf"), 86_400, "days"))


def relative(away: timedelta) -> str:
    """Return how far a time is away.

    >>> [relative(timedelta(seconds=s)) for s in (0.4, 45, 3 * 3600, -86_400 * 3)]
    ['now', 'in 45 s', 'in 3 h', '3 days ago']
    """
    seconds = abs(away.total_seconds())
    if seconds < 1:
        return "now"
    unit, name = next((unit, name) for most, unit, name in _UNITS if seconds < most)
    far = f"{seconds / unit:.0f} {name}"
    return f"in {far}" if away > timedelta(0) else f"{far} ago"


def local(at: datetime, *, now: datetime) -> str:
    """Return a time in this machine's zone, and how far away it is."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %Z} ({relative(at - now)})"
