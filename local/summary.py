"""What a demonstration proved, in figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from local.demonstration import Scheduled


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Counts of jobs, and lateness in seconds. `broken` is a 200 cancel whose job arrived all the same."""

    scheduled: int
    delivered: int
    cancelled: int
    lost: int
    early: int
    broken: int
    p50: float
    p95: float
    longest: float

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.early or self.broken)

    def __str__(self) -> str:
        return (
            f"scheduled {self.scheduled}  delivered {self.delivered}  cancelled {self.cancelled}"
            f"  lost {self.lost}  early {self.early}  delivered after a cancel {self.broken}\n"
            f"lateness p50 {self.p50 * 1000:.0f} ms  p95 {self.p95 * 1000:.0f} ms  max {self.longest * 1000:.0f} ms"
        )


def summary_of(jobs: Sequence[Scheduled]) -> Summary:
    lateness = sorted(job.landed[0].lateness for job in jobs if job.landed)
    return Summary(
        scheduled=len(jobs),
        delivered=sum(bool(job.landed) for job in jobs),
        cancelled=sum(job.cancelled for job in jobs),
        lost=sum(job.is_lost for job in jobs),
        early=sum(job.is_early for job in jobs),
        broken=sum(job.came_after_cancel for job in jobs),
        p50=percentile(lateness, 50),
        p95=percentile(lateness, 95),
        longest=percentile(lateness, 100),
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the least of the ordered values that so many percent of them do not exceed; NaN if there are none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan
