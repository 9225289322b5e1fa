"""Cron expressions: what a clock shows when they run, in whatever zone."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from cronsim import CronSim, CronSimError
from cronsim.explain import explain

from dueline.core.text import shown
from dueline.errors import InvalidSchedule

# No job is due later, so neither is the next run.
_LONGEST_WAIT = timedelta(days=3653)
_DAY = timedelta(days=1)
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001, what a clock shows
_YEARS_LOOKED_AT = 40
MOST_CHARACTERS = 256
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_TERM = re.compile(r"(?:\*|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\w+))?", re.ASCII)
_MONTHS = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid expression of five fields. Clocks are read without a zone."""

    fields: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.fields)

    @property
    def is_interval(self) -> bool:
        """Return whether it runs every so many minutes or hours, and not at times of the day."""
        return self.fields[1].startswith("*")

    @property
    def words(self) -> str:
        return explain(self.text)

    def after(self, clock: datetime) -> Iterator[datetime]:
        """Yield what the clock shows at each run after `clock`."""
        return self._runs(clock, reverse=False)

    def before(self, clock: datetime) -> Iterator[datetime]:
        """Yield what the clock shows at each run before `clock`, the latest first."""
        return self._runs(clock, reverse=True)

    @property
    def spacing(self) -> timedelta:
        """Return the shortest time between two runs by the clock, as if each day had some: a day at most."""
        sim = CronSim(self.text, _SOME_DAY)
        of_day = sorted(60 * hour + minute for hour in sim.hours for minute in sim.minutes)
        # And from the last of a day to the first of the next.
        of_day.append(of_day[0] + 24 * 60)
        return timedelta(minutes=min(later - earlier for earlier, later in pairwise(of_day)))

    def _runs(self, clock: datetime, *, reverse: bool) -> Iterator[datetime]:
        # Beyond the year 9999 there is none.
        with suppress(OverflowError):
            yield from CronSim(self.text, clock, reverse=reverse)


@lru_cache(maxsize=4096)
def cron_of(text: str) -> Cron:
    """Parse an expression. Raises InvalidSchedule with the reason."""
    cron = Cron(fields_of(text))
    if _is_too_rare(cron):
        raise InvalidSchedule(f"cron is {shown(text)}: the days that it names never come, or over 10 years apart")
    return cron


def _is_too_rare(cron: Cron) -> bool:
    if cron.fields[2:4] == ("*", "*") and "#" not in cron.fields[4]:
        return False
    clock, end = _SOME_DAY, _SOME_DAY.replace(year=_SOME_DAY.year + _YEARS_LOOKED_AT)
    while clock < end:
        try:
            run = next(cron.after(clock), None)
        except CronSimError:
            return True
        if run is None or run - clock > _LONGEST_WAIT:
            return True
        # Far enough to skip most runs of a year, and near enough to see a wait of 11 years.
        clock = run + 300 * _DAY
    return False


@dataclass(frozen=True, kw_only=True)
class Field:
    """One of the five: its values, and what else it may be; an error names it, the character and what is allowed."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    besides: str = ""
    example: str = ""

    def check(self, term: str) -> None:
        """Raise ValueError with the reason when a term is not valid in this field."""
        if self.besides and re.fullmatch(self.besides, term, re.ASCII):
            return
        match = _TERM.fullmatch(term)
        if match is None:
            forms = f"*, a value {self._allowed}, a range such as 1-5, or one with a step"
            raise ValueError(f"it must be {forms}{self.example}")
        low = self._value(match["low"]) if match["low"] else self.low
        high = self._value(match["high"]) if match["high"] else self.high
        if high < low:
            raise ValueError("a range must not end before it begins: list its two parts")
        step, most = match["step"], high - low
        if step is not None and not (step.isdigit() and 1 <= int(step) <= most):
            raise ValueError(f"its step must be from 1 to {most}" if most else "a step needs a range")

    def _value(self, text: str) -> int:
        value = int(text) if text.isdigit() else self.names.index(text) if text in self.names else -1
        if not self.low <= value <= self.high:
            raise ValueError(f"a value must be {self._allowed}")
        return value

    @property
    def _allowed(self) -> str:
        named = [name for name in self.names if name]
        return f"from {self.low} to {self.high}" + (f" or {named[0]} to {named[-1]}" if named else "")


FIELDS = (
    Field(name="minute", low=0, high=59),
    Field(name="hour", low=0, high=23),
    Field(name="day of month", low=1, high=31, besides="LW?", example=", L (the last day) or LW (the last weekday)"),
    Field(name="month", low=1, high=12, names=_MONTHS),
    Field(
        name="day of week",
        low=0,
        high=7,
        names=_DAYS,
        besides=r"[0-7]L|([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)#[1-5]",
        example=", 5L (the last Friday) or MON#1 (the first Monday)",
    ),
)
_NAMES = ", ".join(field.name for field in FIELDS)


def fields_of(cron: str) -> tuple[str, ...]:
    """Return the five fields of an expression, in upper case; an alias is written out.

    Raises InvalidSchedule, with the field, the character and what is allowed.

    >>> fields_of("0 9 * * mon-fri"), fields_of("@daily")
    (('0', '9', '*', '*', 'MON-FRI'), ('0', '0', '*', '*', '*'))
    """
    if len(cron) > MOST_CHARACTERS:
        raise InvalidSchedule(f"cron has {len(cron)} characters: at most {MOST_CHARACTERS} are allowed")
    text = ALIASES.get(cron.strip().lower(), cron).upper()
    parts = list(re.finditer(r"\S+", text))
    if text.lstrip().startswith("@"):
        raise InvalidSchedule(f"cron is {shown(cron)}: it must have five fields, or be one of {', '.join(ALIASES)}")
    if len(parts) != len(FIELDS):
        problem = f"it has {len(parts)} fields and must have 5: {_NAMES}, without seconds and years"
        raise InvalidSchedule(f"cron is {shown(cron)}: {problem}")
    for field, part in zip(FIELDS, parts, strict=True):
        _check(field, part, cron)
    return tuple(part[0] for part in parts)


def _check(field: Field, part: re.Match[str], cron: str) -> None:
    at = part.start() + 1
    for term in part[0].split(","):
        try:
            field.check(term)
        except ValueError as why:
            where = f"its {field.name} has {term!r} at character {at}"
            raise InvalidSchedule(f"cron is {shown(cron)}: {where}: {why}") from None
        at += len(term) + 1
