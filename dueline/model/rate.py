"""Rate: how many jobs of a queue may begin per second, minute or hour."""

import re
from dataclasses import dataclass
from typing import Self

from dueline.errors import InvalidJob

MAX_JOBS = 100_000
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_UNITS = {seconds: unit for unit, seconds in _SECONDS.items()}
_TEXT = re.compile(r"(\d{1,6})/([smh])", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """At most `jobs` jobs, 0 to 100,000, per `seconds`: 1, 60 or 3600. Written as "50/s", "90/m" or "200/h"."""

    jobs: int
    seconds: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.jobs <= MAX_JOBS:
            raise InvalidJob(f"rate is {self.jobs} jobs: it must be from 0 to {MAX_JOBS}")
        if self.seconds not in _UNITS:
            raise InvalidJob(f"rate is per {self.seconds} seconds: it must be per 1, 60 or 3600")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rate in a text such as 50/s. Raises InvalidJob.

        >>> Rate.parse("90/m")
        Rate(jobs=90, seconds=60)
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InvalidJob(
                f"rate is {text[:100]!r}: it must be a number of jobs and a unit, such as 50/s, 90/m or 200/h"
            )
        return cls(jobs=int(match[1]), seconds=_SECONDS[match[2]])

    def __str__(self) -> str:
        return f"{self.jobs}/{_UNITS[self.seconds]}"


def rate_of(given: object) -> Rate | None:
    """Return the rate that a caller gives as a Rate, a text or None (no limit). Raises InvalidJob.

    >>> rate_of("50/s")
    Rate(jobs=50, seconds=1)
    """
    if isinstance(given, str):
        return Rate.parse(given)
    if given is None or isinstance(given, Rate):
        return given
    raise InvalidJob(f"rate is {given!r:.100}: it must be a Rate, a text such as 50/s, or None for no limit")
