"""A backup: the tables of a deployment as they were at one instant, to be taken over by a deployment."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dueline.errors import InvalidJob, Unavailable
from dueline.model import rows
from dueline.model.job import Partition
from dueline.model.rows import Key, Row
from dueline.ports import READ_KEYS, Reading, Spread


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


class Readable(Protocol):
    """What rows are read from: a table, or a backup."""

    def read(self, keys: Sequence[Key]) -> Reading: ...


def cursor_in(backup: Readable, partition: Partition) -> str:
    """Return how far a partition had been handed over when a backup was made.

    Raises InvalidJob where that is not known: to begin with the first job would send all of them again.
    """
    key = rows.state_key(partition)
    state = read_whole(backup, [key]).rows.get(key)
    if state is None:
        raise InvalidJob(
            f"the backup has jobs of partition {partition} and no state of it, which tells what was handed over: is its"
            " table of states that of the same deployment? If so, say from when on: --hand-over-from"
        )
    return rows.read_state(state).cursor


def read_whole(table: Readable, keys: Iterable[Key], spread: Spread = map) -> Reading:
    """Read any number of keys, all of them. Raises Throttled or Unavailable."""
    each = sorted(set(keys))
    cut = [each[start : start + READ_KEYS] for start in range(0, len(each), READ_KEYS)]
    readings = list(spread(table.read, cut))
    if unread := set().union(*(reading.unread for reading in readings)):
        raise Unavailable(f"{len(unread)} rows were left unread: try again")
    return Reading(rows={key: row for reading in readings for key, row in reading.rows.items()})
