"""When a schedule runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile

from dueline.errors import InvalidSchedule
from dueline.model.instant import EPOCH
from dueline.model.request import FURTHEST
from dueline.model.text import shown
from dueline.schedules.cron import cron_of
from dueline.schedules.every import Every
from dueline.schedules.local_times import LocalTimes
from dueline.schedules.zones import zone_of

SHORTEST = timedelta(minutes=1)
MOST_RUNS = 1000
# Runs are looked for between these: the longest jitter, a retention and what is kept after a delete have to end within
# the year 9999, the last that an instant can name.
FIRST, LAST = EPOCH, datetime(9988, 1, 1, tzinfo=UTC)
_LAST_BOUND = datetime(9999, 1, 1, tzinfo=UTC)
_SECOND, _MOMENT = timedelta(seconds=1), timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """When a schedule runs: by `cron` in a `zone`, or `every` so often.

    `cron` has five fields, and names times in `zone`, an IANA zone. `every` is 60 s to 10 years, in whole seconds, and
    counts physical time from `start`, without it from 1970. No run is before `start`, and all are before `end`.
    `count` is how many there are from `start` on, 1 to 1,000. None is after the year 9987. Raises InvalidSchedule,
    which names the field, its value and what is allowed.

    A nominal is the instant that a rule names for a run: in UTC, a whole minute of `cron`, a whole second of `every`.
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
        _check_one(self)
        _check_texts(self)
        zone_of(self.zone)
        if self.cron is not None:
            cron_of(self.cron)
        _check_every(self.every)
        _check_order(self)
        _check_count(self)

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the nominals after an instant, strictly, the earliest first.

        Raises ValueError when the instant has no zone.
        """
        last = _last(self)
        since = min(max(_aware(instant), self._start - _MOMENT), LAST)
        return takewhile(lambda nominal: nominal <= last, self._times.after(since))

    def before(self, instant: datetime) -> Iterator[datetime]:
        """Yield the nominals at an instant and before, the latest first, back to 1970.

        Raises ValueError when the instant has no zone.
        """
        start = self._start
        until = max(min(_aware(instant), _last(self)), start - _MOMENT)
        return takewhile(lambda nominal: nominal >= start, self._times.before(until))

    @property
    def spacing(self) -> timedelta:
        """Return the shortest spacing of nominals, a day at most by `cron`: the bound of a jitter.

        It is what the clock shows: where the clock is changed, two may be closer.
        """
        return self._times.spacing

    @property
    def never_fires(self) -> bool:
        """Tell whether there is no nominal at all between `start` and `end`."""
        return next(self.after(FIRST - _MOMENT), None) is None

    @property
    def words(self) -> str:
        """Return the rule in words, for people."""
        return self._times.words

    @property
    def _start(self) -> datetime:
        return self.start or FIRST

    @property
    def _times(self) -> Every | LocalTimes:
        if self.every is not None:
            return Every(self.every, self._start, LAST)
        return LocalTimes(cron_of(self.cron), zone_of(self.zone))


@lru_cache(maxsize=1024)
def _last(rule: Rule) -> datetime:
    """Return the last instant at which there may be a nominal."""
    end = min(rule.end or LAST, LAST) - _MOMENT
    if rule.count is None:
        return end
    runs = rule._times.after(rule._start - _MOMENT)
    return min(end, next(islice(runs, rule.count - 1, None), end))


def _check_one(rule: Rule) -> None:
    if rule.cron is None and rule.every is None:
        raise InvalidSchedule("neither cron nor every is given: it must be one of them")
    if rule.cron is not None and rule.every is not None:
        raise InvalidSchedule(f"cron is {shown(rule.cron)} and every is {shown(rule.every)}: it must be one of them")


def _check_texts(rule: Rule) -> None:
    for name, text in (("cron", rule.cron or ""), ("zone", rule.zone)):
        if not isinstance(text, str):
            raise InvalidSchedule(f"{name} is {shown(text)}: it must be a text")


def _check_every(every: object) -> None:
    if every is None:
        return
    if not isinstance(every, timedelta) or every % _SECOND or not SHORTEST <= every <= FURTHEST:
        allowed = f"from {shown(SHORTEST)} to {FURTHEST.days} days, in whole seconds"
        raise InvalidSchedule(f"every is {shown(every)}: it must be {allowed}")


def _bound(name: str, at: object) -> datetime | None:
    """Return `start` or `end` in UTC."""
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise InvalidSchedule(f"{name} is {shown(at)}: it must be a date and a time with a zone")
    if at.utcoffset() is None:
        raise InvalidSchedule(f"{name} is {_told(at)}: it must have a time zone, such as Z or +01:00")
    if at.microsecond or not FIRST <= at < _LAST_BOUND:
        raise InvalidSchedule(f"{name} is {_told(at)}: it must be in whole seconds, in the years 1970 to 9998")
    return at.astimezone(UTC)


def _check_order(rule: Rule) -> None:
    if rule.start and rule.end and rule.end <= rule.start:
        raise InvalidSchedule(f"end is {_told(rule.end)}: it must be after start, which is {_told(rule.start)}")


def _check_count(rule: Rule) -> None:
    if rule.count is None:
        return
    if type(rule.count) is not int or not 1 <= rule.count <= MOST_RUNS:
        raise InvalidSchedule(f"count is {shown(rule.count)}: it must be from 1 to {MOST_RUNS}")
    if rule.start is None:
        raise InvalidSchedule(f"count is {rule.count}: it must come with start, from which it counts")


def _aware(instant: datetime) -> datetime:
    if instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} has no time zone: add one, such as Z or +01:00")
    return instant


def _told(at: object) -> str:
    return at.isoformat() if isinstance(at, datetime) else shown(at)
