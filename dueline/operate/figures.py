"""Figures: what a deployment's functions reported of a queue, as whoever looks after it reads it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One metric of a queue, or of the deployment (None), and which statistic of its values: Sum or Maximum."""

    queue: str | None
    metric: str
    statistic: str


class Figures(Protocol):
    """The metrics that a deployment's functions report."""

    def read(self, asked: Sequence[Series], *, start: datetime, end: datetime, period: int) -> list[Points]:
        """Return the points of each series, in order of time: one for each period, in seconds, that has a value.

        Raises Forbidden, Throttled or Unavailable.
        """
