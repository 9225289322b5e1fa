"""Cron expressions: what a clock shows when they run. What that is in which zone is not known here."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from cronsim import CronSim, CronSimError
from cronsim.explain import explain

from dueline.errors import InvalidSchedule
from dueline.model.text import shown
from dueline.schedules.syntax import fields_of

# No job is due later, so neither is the next run.
_LONGEST_WAIT = timedelta(days=3653)
_DAY = timedelta(days=1)
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001, what a clock shows
_YEARS_LOOKED_AT = 40


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression of five fields, which is a good one. Clocks are read without a zone."""

    fields: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.fields)

    @property
    def is_interval(self) -> bool:
        """Tell whether it runs every so many minutes or hours, and not at times of the day."""
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
        try:
            yield from CronSim(self.text, clock, reverse=reverse)
        except OverflowError:
            # Beyond the year 9999 there is none.
            return


@lru_cache(maxsize=4096)
def cron_of(text: str) -> Cron:
    """Return the expression that a text is. Raises InvalidSchedule with the reason when it is none."""
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
        # So far as that no rule's runs of a year are looked at one by one, and near enough to see a wait of 11 years.
        clock = run + 300 * _DAY
    return False
