"""A backup: the tables of a deployment as they were at one instant, to be taken over by a deployment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dueline.model.rows import Key, Row
from dueline.ports import Reading


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Some rows of a table, and the key after which the next ones come; None after the last."""

    rows: Sequence[Row]
    after: Key | None


class Backup(Protocol):
    """Two tables that nobody writes: of jobs, and of states. Each call may raise Throttled or Unavailable."""

    name: str

    def jobs(self, segment: int, *, of: int, after: Key | None) -> Part:
        """Read some rows of the table of jobs that are in one of so many segments.

        The rows of one partition key are in one segment, one after another in the order of their sort keys.
        """

    def states(self, *, after: Key | None) -> Part:
        """Read some rows of the table of states."""

    def read(self, keys: Sequence[Key]) -> Reading:
        """Read up to 100 rows of distinct keys, whichever table they are in."""

    def count(self) -> int:
        """Return about how many rows there are."""
