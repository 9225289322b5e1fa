"""The head of a schedule: the one row that says what it is now, and how far its runs are made."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.model.job import Partition
from dueline.model.rows import Key, Row
from dueline.schedules.definition import Definition

KEPT_GENERATIONS = 20


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What a schedule was from `start` (after it) to `end` (up to it). Its definition is kept without the payload."""

    number: int
    definition: Definition
    start: datetime
    end: datetime
    paused: bool = False
    deleted: bool = False


@dataclass(frozen=True, kw_only=True)
class Head:
    """A schedule as it is now.

    Each change makes a new `generation`, which serves after `start`. Its runs up to `planned_to` are submitted; others
    may be, but none after the step that begins there. All runs of all generations are in one partition of its queue.
    `retention` is its queue's when it was changed last. `generations` are the last 20 that were before, the latest
    first. A head that is `deleted` is kept: a schedule of the same name goes on with the next generation.
    """

    queue: str
    name: str
    definition: Definition
    generation: int
    start: datetime
    paused: bool
    deleted: bool
    partition: Partition
    planned_to: datetime
    retention: timedelta
    generations: tuple[Generation, ...] = ()

    @property
    def etag(self) -> str:
        """The entity tag of this generation, quoted as HTTP has it. How far it is planned does not change it."""
        raise NotImplementedError

    @property
    def is_live(self) -> bool:
        """Tell whether it makes runs: it is neither paused nor deleted."""
        return not (self.paused or self.deleted)


def head_key(queue: str, name: str) -> Key:
    return f"{queue}#schedules", name


def count_key(queue: str) -> Key:
    """Return the key of the row that counts a queue's schedules: `count`. It sorts before each of them."""
    return f"{queue}#schedules", "!count"


def head_row(head: Head) -> Row:
    raise NotImplementedError


def read_head(row: Row) -> Head:
    """Return the head that a row holds. Raises Unavailable when it cannot be read: it is no guess to make."""
    raise NotImplementedError
