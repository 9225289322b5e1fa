"""Finding: one thing that is wrong, what to do about it, and the page that tells more."""

from dataclasses import dataclass, field
from enum import Enum

_GUIDE = "docs/doctor.md"


class Severity(Enum):
    """How bad a finding is, the worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Its place among all, 0 the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What is wrong, with what it is about: a queue, a function, a table. `code` never changes; `do` is the remedy."""

    code: str
    severity: Severity
    about: str
    what: str
    do: str
    page: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unseen:
    """What could not be looked at, the right that this needs, "" if no right helps, and what AWS said."""

    what: str
    needs: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All that was found, the worst first, and what could not be looked at."""

    findings: tuple[Finding, ...]
    unseen: tuple[Unseen, ...] = field(default=())


def guide(heading: str) -> str:
    """Return the section about what no alarm tells."""
    return f"{_GUIDE}#{heading}"
