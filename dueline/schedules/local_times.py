"""A cron expression in a zone: its runs as instants, across changes of the clock."""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from dueline.schedules.cron import Cron
from dueline.schedules.zones import LONGEST_CHANGE, clock_change, end_of_gap, instants

_NONE, _MINUTE, _MOMENT = timedelta(0), timedelta(minutes=1), timedelta(microseconds=1)
Order = Callable[[datetime, datetime], bool]


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """The runs of an expression in a zone."""

    cron: Cron
    zone: ZoneInfo

    @property
    def words(self) -> str:
        return f"{self.cron.words}, {self.zone.key}"

    @property
    def spacing(self) -> timedelta:
        return self.cron.spacing

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs after an instant, strictly."""
        clock, fold = self._clock(instant)
        # In a fold the clock shows again what it showed before.
        runs = self._runs(self.cron.after(clock - fold), operator.gt)
        return _in_order(runs, operator.gt, last=instant)

    def before(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs at an instant and before, the latest first."""
        clock, fold = self._clock(instant)
        runs = self._runs(self.cron.before(clock + fold + _MINUTE), operator.lt)
        return _in_order(runs, operator.lt, last=instant + _MOMENT)

    def _clock(self, instant: datetime) -> tuple[datetime, timedelta]:
        """Return what the clock shows then, and how long the fold is that this is in."""
        clock = instant.astimezone(self.zone).replace(tzinfo=None)
        return clock, max(_NONE, -clock_change(clock, self.zone))

    def _runs(self, clocks: Iterable[datetime], is_beyond: Order) -> Iterator[datetime]:
        """Yield the runs at what the clock shows, in order: a fold's second pass after all of its first.

        The clocks go on until beyond where runs are looked for, so what is held is let go.
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
        found = instants(clock, self.zone)
        if len(found) == 1 or self.cron.is_interval or abs(clock_change(clock, self.zone)) > LONGEST_CHANGE:
            return found
        return found[:1] or (end_of_gap(clock, self.zone),)


def _in_order(runs: Iterable[datetime], is_beyond: Order, *, last: datetime) -> Iterator[datetime]:
    """Yield each run that is beyond the last, once: several may fall on a gap's end."""
    for run in runs:
        if is_beyond(run, last):
            yield run
            last = run
