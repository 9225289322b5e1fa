"""When a schedule runs: by a cron expression in a time zone, or at an interval."""

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from itertools import count, islice, takewhile
from zoneinfo import ZoneInfo

from dueline.core.instant import EPOCH
from dueline.core.request import FURTHEST
from dueline.core.text import shown
from dueline.errors import InvalidSchedule
from dueline.schedules.cron import Cron, cron_of

Order = Callable[[datetime, datetime], bool]
SHORTEST = _MINUTE = timedelta(minutes=1)
MOST_RUNS = 1000
# Runs are looked for between these: the longest jitter, a retention and what is kept after a delete have to end within
# the year 9999, the last that an instant can name.
FIRST, LAST = EPOCH, datetime(9988, 1, 1, tzinfo=UTC)
_LAST_BOUND = datetime(9999, 1, 1, tzinfo=UTC)
SECOND, MOMENT = timedelta(seconds=1), timedelta(microseconds=1)
_NONE = timedelta(0)
# A longer one is no change of the clock, but of the date line: Samoa skipped a whole day in 2011.
LONGEST_CHANGE = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """The runs of a cron expression in a zone, as instants, across changes of the clock."""

    cron: Cron
    zone: ZoneInfo

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs after an instant, strictly."""
        clock, fold = self._clock(instant)
        # In a fold the clock shows again what it showed before.
        runs = self._runs(self.cron.runs(clock - fold), operator.gt)
        return _in_order(runs, operator.gt, last=instant)

    def before(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs at an instant and before, the latest first."""
        clock, fold = self._clock(instant)
        runs = self._runs(self.cron.runs(clock + fold + _MINUTE, reverse=True), operator.lt)
        return _in_order(runs, operator.lt, last=instant + MOMENT)

    def _clock(self, instant: datetime) -> tuple[datetime, timedelta]:
        """Return what the clock shows then, and how long the fold is that this is in."""
        clock = instant.astimezone(self.zone).replace(tzinfo=None)
        return clock, max(_NONE, -clock_change(clock, self.zone))

    def _runs(self, clocks: Iterable[datetime], is_beyond: Order) -> Iterator[datetime]:
        """Yield the runs at what the clock shows, in order: a fold's second pass after all of its first.

        The clocks go on beyond the last run, so those held back come out.
        """
        held: list[datetime] = []
        for clock in clocks:
            runs = sorted(self._runs_at(clock), reverse=is_beyond is operator.lt)
            if held and runs and is_beyond(runs[0], held[0]):
                yield from held
                held.clear()
            yield from runs[:1]
            held += runs[1:]

    def _runs_at(self, clock: datetime) -> tuple[datetime, ...]:
        at = instants(clock, self.zone)
        if len(at) == 1 or self.cron.is_interval or abs(clock_change(clock, self.zone)) > LONGEST_CHANGE:
            return at
        return at[:1] or (end_of_gap(clock, self.zone),)


def _in_order(runs: Iterable[datetime], is_beyond: Order, *, last: datetime) -> Iterator[datetime]:
    """Yield each run that is beyond the last, once: several may fall on a gap's end."""
    for run in runs:
        if is_beyond(run, last):
            yield run
            last = run


@dataclass(frozen=True, slots=True)
class Every:
    """The runs at an interval of physical time from an anchor on, the first at it.

    >>> every = Every(timedelta(hours=1), anchor=datetime(2027, 1, 1))
    >>> [run.hour for run in islice(every.after(datetime(2000, 1, 1)), 2)], list(every.before(datetime(2000, 1, 1)))
    ([0, 1], [])
    """

    spacing: timedelta
    anchor: datetime

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs after an instant, strictly."""
        return map(self._run, count(max(0, self._number(instant) + 1)))

    def before(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs at an instant and before, the latest first."""
        return map(self._run, range(self._number(instant), -1, -1))

    def _number(self, instant: datetime) -> int:
        return (instant - self.anchor) // self.spacing

    def _run(self, number: int) -> datetime:
        return self.anchor + number * self.spacing


@dataclass(frozen=True, kw_only=True)
class Rule:
    """When a schedule runs: by `cron` in a `zone`, or at the interval `every`.

    `cron` has five fields, and names times in `zone`, an IANA zone. `every` is 60 s to 10 years, in whole seconds, and
    counts physical time from `start`, without it from 1970. No run is before `start`, and all are before `end`.
    `count` is how many there are from `start` on, 1 to 1,000. None is after the year 9987. Raises InvalidSchedule,
    which names the field, its value and what is allowed.

    The scheduled time of a run is the instant that its rule names: in UTC, a whole minute of `cron`, a whole second of
    `every`.
    Around changes of the clock of up to 3 hours, a rule at times of the day runs once: at a gap's end, and in a fold's
    first pass. A rule whose hour begins with `*` runs whenever the clock shows it: in no gap, and in both passes.
    """

    cron: str | None = None
    every: timedelta | None = None
    zone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(self, name, _bound(name, getattr(self, name)))
        self._check_interval()
        zone_of(self.zone)
        if self.cron is not None:
            cron_of(self.cron)
        else:
            _check_every(self.every)
        if self.start and self.end and self.end <= self.start:
            must = f"it must be after start, which is {self.start.isoformat()}"
            raise InvalidSchedule(f"end is {self.end.isoformat()}: {must}")
        if self.count is not None and (type(self.count) is not int or not 1 <= self.count <= MOST_RUNS):
            raise InvalidSchedule(f"count is {shown(self.count)}: it must be from 1 to {MOST_RUNS}")
        if self.count is not None and self.start is None:
            raise InvalidSchedule(f"count is {self.count}: it must come with start, from which it counts")

    def _check_interval(self) -> None:
        if self.cron is None and self.every is None:
            raise InvalidSchedule("neither cron nor every is given: it must be one of them")
        if self.cron is not None and self.every is not None:
            both = f"cron is {shown(self.cron)} and every is {shown(self.every)}"
            raise InvalidSchedule(f"{both}: it must be one of them")
        for name, text in (("cron", "" if self.cron is None else self.cron), ("zone", self.zone)):
            if not isinstance(text, str):
                raise InvalidSchedule(f"{name} is {shown(text)}: it must be a text")

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the scheduled times after an instant, strictly, the earliest first."""
        since = min(max(instant, self._start - MOMENT), LAST)
        end = self._end
        runs = takewhile(lambda at: at <= end, self._times.after(since))
        return runs if self.count is None else islice(runs, self.count - _counted(self, since)[0])

    def before(self, instant: datetime) -> Iterator[datetime]:
        """Yield the scheduled times at an instant and before, the latest first, back to 1970."""
        start = self._start
        until = max(min(instant, self._end), start - MOMENT)
        if self.count is not None:
            _, until = _counted(self, until)
        return takewhile(lambda at: at >= start, self._times.before(until))

    @property
    def spacing(self) -> timedelta:
        """Return the shortest spacing of scheduled times, a day at most by `cron`: the bound of a jitter.

        It is what the clock shows: where the clock is changed, two may be closer.
        """
        return cron_of(self.cron).spacing if self.every is None else self.every

    @property
    def _start(self) -> datetime:
        return self.start or FIRST

    @property
    def _end(self) -> datetime:
        """The last instant at which there may be a scheduled time, but for `count`."""
        return min(self.end or LAST, LAST) - MOMENT

    @property
    def _times(self) -> Every | LocalTimes:
        if self.every is not None:
            return Every(self.every, self._start)
        return LocalTimes(cron_of(self.cron), zone_of(self.zone))


@lru_cache(maxsize=1024)
def _counted(rule: Rule, until: datetime) -> tuple[int, datetime]:
    """Return how many of a rule's `count` scheduled times are at an instant or before, and the last of them.

    It does not go further: 1,000 runs on a rare day are thousands of years. A year's first count serves all of it.
    """
    number, last = 0, rule._start - MOMENT
    new_year = datetime(until.year, 1, 1, tzinfo=UTC)
    if last < new_year < until:
        number, last = _counted(rule, new_year)
    runs = takewhile(lambda at: at <= until, rule._times.after(last))
    counted = [last, *islice(runs, (rule.count or 0) - number)]
    return number + len(counted) - 1, counted[-1]


def _check_every(every: object) -> None:
    if not isinstance(every, timedelta) or every % SECOND or not SHORTEST <= every <= FURTHEST:
        allowed = f"from {shown(SHORTEST)} to {FURTHEST.days} days, in whole seconds"
        raise InvalidSchedule(f"every is {shown(every)}: it must be {allowed}")


def _bound(name: str, at: object) -> datetime | None:
    """Return `start` or `end` in UTC."""
    if at is None:
        return None
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise InvalidSchedule(f"{name} is {shown(at)}: it must be a date and a time with a zone, such as Z or +01:00")
    if at.microsecond or not FIRST <= at < _LAST_BOUND:
        raise InvalidSchedule(f"{name} is {shown(at)}: it must be in whole seconds, in the years 1970 to 9998")
    return at.astimezone(UTC)


# Time zones by the pinned package tzdata, not by the machine's: all processes must agree.
@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    """Return the zone of that name. Raises InvalidSchedule when there is none."""
    if name not in _names():
        raise InvalidSchedule(f"zone is {shown(name)}: it must be the name of an IANA time zone, such as Europe/Berlin")
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def tzdata_version() -> str:
    """Return the version of the time zones' rules, such as 2026a."""
    return str(import_module("tzdata").IANA_VERSION)


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
    seconds = range(clock_change(clock, zone) // SECOND)

    def is_after(second: int) -> bool:
        return _offset((earliest + second * SECOND).astimezone(zone)) == after

    return earliest + bisect_left(seconds, True, key=is_after) * SECOND


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or _NONE


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text().split())
