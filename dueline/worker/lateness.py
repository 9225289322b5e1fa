"""How late a job begins, as far as a worker knows the time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Lateness:
    """For how many seconds a job was due when it began, by AWS's own clock: at least, and at most (infinite: unknown).

    Both are below 0 for a job that was early for certain, by at least that.
    """

    at_least: float
    at_most: float

    @classmethod
    def of(cls, due: datetime, *, now: datetime, behind: float = 0.0, held: bool = False) -> Self:
        """Return the lateness of a job that begins `now`, by a clock that is up to `behind` seconds behind AWS's own.

        One that the worker itself `held` until it was due is not early, even if its clock was set meanwhile.

        >>> from datetime import UTC, timedelta
        >>> due = datetime(2026, 11, 21, tzinfo=UTC)
        >>> Lateness.of(due, now=due - timedelta(seconds=0.25), behind=0.75)
        Lateness(at_least=0.0, at_most=0.5)
        """
        least = (now - due).total_seconds()
        most = least + behind
        if held:
            least, most = max(0.0, least), max(0.0, most)
        # What is not known to be early is taken to be on time: SQS hands over no job before.
        return cls(at_least=max(least, min(0.0, most)), at_most=most)
