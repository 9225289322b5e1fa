"""The books: who was early, late, lost or repeated."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.lateness import record
from bench.lateness.plan import Scheduled, Wish
from bench.lateness.record import Landed
from local.summary import percentile

WINDOW_SECONDS = 5
ON_TIME_SECONDS = 60
_SHAPE_STEPS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """What was due when (seconds since 1970), what landed, and what was taken back.

    `cancelled` are the jobs whose cancel was promised: they must not land. `asked` are those of which nothing was
    promised: they may or may not.
    """

    dues: Mapping[int, float]
    landed: Sequence[Landed]
    cancelled: Collection[int] = field(default_factory=frozenset)
    asked: Collection[int] = field(default_factory=frozenset)

    def of(self, numbers: Collection[int]) -> "Books":
        """Return the books of some of the jobs."""
        chosen = frozenset(numbers)
        return Books(
            dues={number: due for number, due in self.dues.items() if number in chosen},
            landed=[each for each in self.landed if each.number in chosen],
            cancelled=chosen & frozenset(self.cancelled),
            asked=chosen & frozenset(self.asked),
        )

    @property
    def expected(self) -> set[int]:
        return self.dues.keys() - set(self.cancelled) - set(self.asked)

    @property
    def times(self) -> Counter[int]:
        return Counter(each.number for each in self.landed if each.number in self.dues)

    @property
    def lost(self) -> set[int]:
        return self.expected - self.times.keys()

    @property
    def early(self) -> set[int]:
        return {number for number, late in self.lateness().items() if late < 0}

    @property
    def repeated(self) -> int:
        """How often jobs landed again."""
        return sum(times - 1 for times in self.times.values())

    @property
    def broken(self) -> set[int]:
        """The jobs that landed though their cancel was promised."""
        return set(self.cancelled) & self.times.keys()

    def lateness(self) -> dict[int, float]:
        """Return how late each job first landed, in seconds."""
        first: dict[int, float] = {}
        for each in self.landed:
            if each.number in self.dues:
                late = each.at - self.dues[each.number]
                first[each.number] = min(late, first.get(each.number, late))
        return first

    @property
    def on_time_share(self) -> float:
        """The share of the expected jobs that landed within 60 s of their due time, and not before it."""
        late = self.lateness()
        return sum(0 <= late.get(number, -1) <= ON_TIME_SECONDS for number in self.expected) / len(self.expected)

    def told(self) -> dict[str, Any]:
        """Return the counts, and the lateness in seconds."""
        late = sorted(self.lateness().values())
        counts = {"early": len(self.early), "lost": len(self.lost), "repeated": self.repeated}
        percents = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
        told = {name: round(percentile(late, percent), 4) for name, percent in percents.items()}
        told["mean"] = round(sum(late) / len(late), 4) if late else math.nan
        broken = {"after a promised cancel": len(self.broken)}
        return {"jobs": len(self.expected), "landed": len(late), **told, **counts, **broken}

    def shape(self) -> list[float]:
        """Return lateness at even steps from the least to the greatest: as many values whatever the number of jobs."""
        late = sorted(self.lateness().values())
        last = len(late) - 1
        return [round(late[round(last * step / _SHAPE_STEPS)], 4) for step in range(_SHAPE_STEPS + 1)] if late else []

    def over_time(self, *, begin: float) -> list[tuple[float, float]]:
        """Return the p99 of what is due in each 5 s, by the middle of these, in seconds from `begin`."""
        windows: defaultdict[int, list[float]] = defaultdict(list)
        for number, late in self.lateness().items():
            windows[int((self.dues[number] - begin) // WINDOW_SECONDS)].append(late)
        return [
            ((window + 0.5) * WINDOW_SECONDS, round(percentile(sorted(late), 99), 4))
            for window, late in sorted(windows.items())
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What was scheduled, and the books of it."""

    scheduled: Scheduled
    books: Books

    @classmethod
    def read(cls, scheduled: Scheduled, written: Path) -> "Run":
        """Return a run of which nothing was taken back, from the record of its consumers."""
        return cls(scheduled=scheduled, books=Books(dues=scheduled.dues, landed=list(record.read(written))))

    def by(self, name: Callable[[Wish], str]) -> dict[str, Books]:
        """Return the books of the jobs of each name, in the order in which names come first; "" leaves a job out."""
        numbers: dict[str, list[int]] = {}
        for wish in self.scheduled.wishes:
            numbers.setdefault(name(wish), []).append(wish.number)
        return {name: self.books.of(chosen) for name, chosen in numbers.items() if name}
