"""Time zones by the rules of the pinned package tzdata, whatever a machine has: all processes must agree."""

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from dueline.errors import InvalidSchedule
from dueline.model.text import shown

# What is longer is no change of the clock, but of the date line: Samoa went without a whole day in 2011.
LONGEST_CHANGE = timedelta(hours=3)
_SECOND = timedelta(seconds=1)
_NONE = timedelta(0)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    """Return the zone of that name. Raises InvalidSchedule when there is none."""
    if name not in _names():
        raise InvalidSchedule(f"zone is {shown(name)}: it must be the name of an IANA time zone{_like(name)}")
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def clock_change(clock: datetime, zone: ZoneInfo) -> timedelta:
    """Return by how much the clock is changed around what it shows: over 0 in a gap, below 0 in a fold, else 0.

    >>> berlin = zone_of("Europe/Berlin")
    >>> print(clock_change(datetime(2027, 3, 28, 2, 30), berlin))
    1:00:00
    """
    return _offset(clock.replace(tzinfo=zone, fold=1)) - _offset(clock.replace(tzinfo=zone, fold=0))


def instants(clock: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return when the clock shows this: once; in a gap never, in a fold twice.

    >>> berlin = zone_of("Europe/Berlin")
    >>> [each.isoformat() for each in instants(datetime(2027, 10, 31, 2, 30), berlin)]
    ['2027-10-31T00:30:00+00:00', '2027-10-31T01:30:00+00:00']
    """
    change = clock_change(clock, zone)
    if change > _NONE:
        return ()
    first = (clock - _offset(clock.replace(tzinfo=zone))).replace(tzinfo=UTC)
    return (first, first - change) if change else (first,)


def end_of_gap(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return when the clock is put forward over what it would have shown.

    >>> end_of_gap(datetime(2027, 3, 28, 2, 30), zone_of("Europe/Berlin")).isoformat()
    '2027-03-28T01:00:00+00:00'
    """
    after = _offset(clock.replace(tzinfo=zone, fold=1))
    earliest = (clock - after).replace(tzinfo=UTC)
    seconds = range(clock_change(clock, zone) // _SECOND)

    def is_after(second: int) -> bool:
        return _offset((earliest + second * _SECOND).astimezone(zone)) == after

    return earliest + bisect_left(seconds, True, key=is_after) * _SECOND


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or _NONE


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text().split())


def _like(name: str) -> str:
    lower = {each.lower(): each for each in _names()}
    near = get_close_matches(name[:100].lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]!r}?" if near else ", such as Europe/Berlin"
