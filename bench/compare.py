"""Compare the ratios of two runs: those of one commit on one machine repeat within 10 %."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.results import load

REPEATS_WITHIN = 0.10


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A ratio of two runs."""

    part: str
    name: str
    one: float
    other: float

    @property
    def spread(self) -> float:
        """By how much the larger exceeds the smaller, as a share of it.

        >>> round(Pair(part="cpu", name="of the floor", one=0.9, other=0.99).spread, 2)
        0.1
        """
        low, high = sorted((self.one, self.other))
        return 0.0 if low == high else (high - low) / low if low > 0 else float("inf")

    @property
    def repeats(self) -> bool:
        return self.spread <= REPEATS_WITHIN


def pairs(parts: Sequence[str], one: Path, other: Path) -> Iterator[Pair]:
    """Yield each ratio that both runs have. Raises FileNotFoundError where a part was not measured."""
    for part in parts:
        mine, theirs = (load(part, folder=folder).measured.ratios for folder in (one, other))
        for name in mine.keys() & theirs.keys():
            yield Pair(part=part, name=name, one=mine[name], other=theirs[name])
