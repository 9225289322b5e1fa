"""Instants: aware, in UTC, in whole milliseconds, and as text that sorts in the order of time. Spans as text."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_UNITS = ("weeks", "days", "hours", "minutes", "seconds")
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,3})?"
_SPAN = re.compile("".join(f"(?:(?P<{unit}>{_NUMBER}){unit[0]})?" for unit in _UNITS))
# Nearly that, for schemas.
SPAN_PATTERN = rf"^({_NUMBER}[wdhms]?)+$"


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


def parse_span(text: str) -> timedelta:
    """Return the span of time that a text names: seconds, or numbers with units from weeks to seconds.

    >>> [str(parse_span(text)) for text in ("90", "1.5h", "1h30m", "1w")]
    ['0:01:30', '1:30:00', '1:30:00', '7 days, 0:00:00']
    """
    match = _SPAN.fullmatch(f"{text}s" if re.fullmatch(_NUMBER, text) else text)
    if match and text:
        with suppress(OverflowError):
            return timedelta(**{unit: float(number) for unit, number in match.groupdict().items() if number})
    units = "in seconds or numbers with the units w, d, h, m and s, such as 15m, 1h30m or 3d"
    raise ValueError(f"{text[:100]!r} is no span of time: it must be 10 years at most, {units}")


def seconds(span: Any) -> Any:
    """Return the seconds of a span that is a text or a timedelta, as an int where they are whole; all else as it is.

    Raises ValueError for a text that is no span.

    >>> seconds("15m"), seconds(timedelta(seconds=60)), seconds(0.5), seconds(None)
    (900, 60, 0.5, None)
    """
    span = parse_span(span) if isinstance(span, str) else span
    span = span.total_seconds() if isinstance(span, timedelta) else span
    return int(span) if isinstance(span, float) and span.is_integer() else span


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
