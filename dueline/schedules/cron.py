"""Cron expressions: what a clock shows when they run, in whatever zone."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from dueline.core.text import shown
from dueline.errors import InvalidSchedule

_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001, what a clock shows
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
# The five fields, and what their values may be.
_FIELDS = {
    "minute": (Field.MINUTE, "0 to 59"),
    "hour": (Field.HOUR, "0 to 23"),
    "day of month": (Field.DAY, "1 to 31, L (the last day), LW (the last weekday)"),
    "month": (Field.MONTH, "1 to 12, JAN to DEC"),
    "day of week": (Field.DOW, "0 to 7, SUN to SAT, 5L (the last Friday), MON#1 (the first Monday)"),
}


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid expression of five fields. Clocks are read without a zone."""

    text: str

    @property
    def is_interval(self) -> bool:
        """Return whether it runs every so many minutes or hours, and not at times of the day."""
        return self.text.split()[1].startswith("*")

    def runs(self, clock: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        """Yield what the clock shows at each run after `clock`, or at each one before it, the latest first."""
        # Beyond the year 9999 there is none, nor on a day that no month has.
        with suppress(OverflowError, CronSimError):
            yield from CronSim(self.text, clock, reverse=reverse)

    @property
    def spacing(self) -> timedelta:
        """Return the shortest time between two runs by the clock, as if each day had some: a day at most."""
        sim = CronSim(self.text, _SOME_DAY)
        of_day = sorted(60 * hour + minute for hour in sim.hours for minute in sim.minutes)
        # And from the last of a day to the first of the next.
        of_day.append(of_day[0] + 24 * 60)
        return timedelta(minutes=min(later - earlier for earlier, later in pairwise(of_day)))


@lru_cache(maxsize=4096)
def cron_of(text: str) -> Cron:
    """Parse an expression. Raises InvalidSchedule with the reason."""
    cron = Cron(normalized(text))
    if next(cron.runs(_SOME_DAY), None) is None:
        raise InvalidSchedule(f"cron is {shown(text)}: the days that it names never come")
    return cron


def normalized(cron: str) -> str:
    """Return an expression as five fields in upper case; an alias is written out.

    Raises InvalidSchedule, with the field, its value and what is allowed.

    >>> normalized(" 0 9 * * mon-fri"), normalized("@daily")
    ('0 9 * * MON-FRI', '0 0 * * *')
    """
    if len(cron) > MOST_CHARACTERS:
        raise InvalidSchedule(f"cron has {len(cron)} characters: at most {MOST_CHARACTERS} are allowed")
    text = ALIASES.get(cron.strip().lower(), cron).upper()
    if text.lstrip().startswith("@"):
        raise InvalidSchedule(f"cron is {shown(cron)}: it must have five fields, or be one of {', '.join(ALIASES)}")
    values = text.split()
    if len(values) != len(_FIELDS):
        problem = f"it has {len(values)} fields and must have 5: {', '.join(_FIELDS)}, without seconds and years"
        raise InvalidSchedule(f"cron is {shown(cron)}: {problem}")
    for name, value in zip(_FIELDS, values, strict=True):
        for term in value.split(","):
            if not _is_valid(term, name):
                allowed = f"{_FIELDS[name][1]}, *, a range such as 1-5, or one of these with a step within it"
                raise InvalidSchedule(f"cron is {shown(cron)}: its {name} has {term!r}: it must be {allowed}")
    return " ".join(values)


def _is_valid(term: str, name: str) -> bool:
    """Return whether a term is valid in a field, and a step has a second value to step to."""
    try:
        values = _FIELDS[name][0].parse(term)
    except CronSimError:
        return False
    return len(values) > 1 or "/" not in term
