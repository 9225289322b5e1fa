"""Instants: aware, in UTC, in whole milliseconds, and as text that sorts in the order of time."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def round_up(at: datetime) -> datetime:
    """Return `at` in UTC, rounded up to a whole millisecond, so that nothing is due early.

    Raises ValueError when `at` has no zone.

    >>> text(round_up(datetime(2026, 1, 1, microsecond=1, tzinfo=UTC)))
    '2026-01-01T00:00:00.001Z'
    """
    return from_epoch_ms(-(-(_aware(at) - EPOCH) // _MILLISECOND))


# When a job is due is written out several times while its batch is in hand.
@lru_cache(maxsize=4096)
def text(at: datetime) -> str:
    """Return `at` as ISO 8601 in UTC with milliseconds, which sorts as time does.

    >>> text(datetime(2026, 11, 21, 7, 5, tzinfo=UTC))
    '2026-11-21T07:05:00.000Z'
    """
    return _aware(at).isoformat(timespec="milliseconds")[:-6] + "Z"


def parse(iso: str) -> datetime:
    """Return the instant in an ISO 8601 text.

    Raises ValueError when it is no such text, has no zone, or lies outside the years 1 to 9999 in UTC.
    """
    return _aware(datetime.fromisoformat(iso))


def epoch_ms(at: datetime) -> int:
    """Return the whole milliseconds since 1970, rounded down."""
    return (at - EPOCH) // _MILLISECOND


def from_epoch_ms(milliseconds: int) -> datetime:
    """Return the instant so many milliseconds after 1970."""
    return EPOCH + milliseconds * _MILLISECOND


def _aware(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no time zone: add one, such as Z or +01:00")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{at.isoformat()} is outside the years 1 to 9999 in UTC") from None
