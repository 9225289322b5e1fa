"""A run every so often, by physical time: no clock on a wall changes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Every:
    """The runs from an anchor on, the first at it.

    >>> every = Every(timedelta(hours=1), anchor=datetime(2027, 1, 1), end=datetime(2027, 1, 1, 1))
    >>> [run.hour for run in every.after(datetime(2000, 1, 1))], list(every.before(datetime(2000, 1, 1)))
    ([0, 1], [])
    """

    spacing: timedelta
    anchor: datetime
    end: datetime

    @property
    def words(self) -> str:
        return f"Every {self.spacing} from {self.anchor.isoformat()}"

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs after an instant, strictly."""
        first = max(0, self._number(instant) + 1)
        return map(self._run, range(first, self._number(self.end) + 1))

    def before(self, instant: datetime) -> Iterator[datetime]:
        """Yield the runs at an instant and before, the latest first."""
        return map(self._run, range(self._number(instant), -1, -1))

    def _number(self, instant: datetime) -> int:
        return (instant - self.anchor) // self.spacing

    def _run(self, number: int) -> datetime:
        return self.anchor + number * self.spacing
