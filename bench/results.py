"""What is kept of a run: a JSON file a part, which says on what and when it was measured, and pictures beside it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.part import Figures, Measured, Part, Target

# The ratios of two runs of one commit on one machine.
REPEATS_WITHIN = 0.10
STORED = Path(__file__).parent / "results"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A part as it was measured. `on` tells the machine and the versions."""

    part: str
    quick: bool
    on: dict[str, str]
    seconds: float
    measured: Measured
    format: int = 1

    @property
    def figures(self) -> Figures:
        return self.measured.figures


def save(result: Result, part: Part, *, folder: Path) -> None:
    """Write a result as JSON, and its pictures; what stood there of this part is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f"{part.name}-*.svg"):
        stale.unlink()
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n"
    (folder / f"{part.name}.json").write_text(text)
    for name, picture in part.pictures(json.loads(text)["measured"]["figures"]).items():
        (folder / f"{part.name}-{name}.svg").write_text(picture)


def load(name: str, *, folder: Path = STORED) -> Result:
    """Return the stored result of a part. Raises FileNotFoundError where there is none."""
    told: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    measured = told["measured"]
    targets = tuple(Target(**target) for target in measured["targets"])
    return Result(**{**told, "measured": Measured(**{**measured, "targets": targets})})


def is_current(part: Part, *, folder: Path = STORED) -> bool:
    """Tell whether a result of a part is there whose figures the part can tell."""
    return (folder / f"{part.name}.json").exists() and load(part.name, folder=folder).format == part.format


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


def is_stored(name: str, *, folder: Path) -> bool:
    """Return whether a folder has a result of a part."""
    return (folder / f"{name}.json").exists()


def pairs(parts: Sequence[str], one: Path, other: Path) -> Iterator[Pair]:
    """Yield each ratio that both runs have. Raises FileNotFoundError where a part was not measured."""
    for part in parts:
        mine, theirs = (load(part, folder=folder).measured.ratios for folder in (one, other))
        for name in mine.keys() & theirs.keys():
            yield Pair(part=part, name=name, one=mine[name], other=theirs[name])
