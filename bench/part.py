"""A part of what is measured: how to measure it, and how to show it in tables and pictures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a figure is to reach: `bound`, at most or at least. `why` says in a sentence why it does not.

    `before` is what it was before the last round of work on it.
    """

    what: str
    got: float
    bound: float
    at_most: bool = True
    unit: str = ""
    why: str = ""
    before: float | None = None

    @property
    def is_met(self) -> bool:
        return self.got <= self.bound if self.at_most else self.got >= self.bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What came out.

    `figures` are plain JSON, all that tables and pictures need; `ratios` those that repeat within 10 % from run to run.
    """

    figures: Figures
    ratios: dict[str, float]
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """What a part is given: whether to be quick, a folder to scratch in, and where to tell its progress."""

    quick: bool
    scratch: Path
    progress: Progress


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part of what is measured.

    `markdown` returns the tables, and `pictures` drawings in SVG by their names, both out of the figures as read back
    from JSON. What is stored in another `format` of the figures is not told until it is measured anew.
    """

    name: str
    title: str
    measure: Callable[[Bench], Measured]
    markdown: Callable[[Figures], str]
    pictures: Callable[[Figures], dict[str, str]]
    format: int = 1
