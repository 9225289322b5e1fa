"""The head of a schedule: the one row that says what it is now, and how far its runs are made."""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from dueline.errors import Unavailable
from dueline.model import instant
from dueline.model.job import Partition
from dueline.model.packing import pack, unpack
from dueline.model.rows import Row, key
from dueline.model.schedule_rows import MOST_HEAD_BYTES, head_key
from dueline.schedules.definition import SECOND, Definition

KEPT_GENERATIONS = 20
# Longer than a planning job that its queue has in hand, and then its dead-letter queue.
DELETED_IS_KEPT = timedelta(days=45)


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What a schedule was from `start` (after it) to `end` (up to it).

    Of its definition the payload, the owner and the description are not kept.
    """

    number: int
    definition: Definition
    start: datetime
    end: datetime
    paused: bool = False
    deleted: bool = False

    @property
    def is_live(self) -> bool:
        """Tell whether it made runs."""
        return not (self.paused or self.deleted)


@dataclass(frozen=True, kw_only=True)
class Head:
    """A schedule as it is now.

    Each change makes a new `generation`, which serves after `start`. Its runs up to `planned_to` are submitted; others
    may be, but none after the step that begins there. All runs of all generations are in one partition of its queue.
    `retention` is its queue's when it was changed last. `generations` are the last 20 that were before, the latest
    first. A head that is `deleted` is kept for as long as a schedule of the same name has to go on with the next
    generation: while jobs of earlier ones may be due, up to `used_to`, that a change cancelled.
    """

    queue: str
    name: str
    definition: Definition
    generation: int
    start: datetime
    paused: bool = False
    deleted: bool = False
    partition: Partition
    planned_to: datetime
    retention: timedelta
    generations: tuple[Generation, ...] = ()
    used_to: datetime | None = None

    @property
    def etag(self) -> str:
        """The entity tag of this generation, quoted as HTTP has it. How far it is planned does not change it."""
        return f'"{self.generation}-{instant.epoch_ms(self.start)}"'

    @property
    def is_live(self) -> bool:
        """Tell whether it makes runs: it is neither paused nor deleted."""
        return not (self.paused or self.deleted)

    def up_to(self, end: datetime) -> Generation:
        """Return this generation as one that ends there."""
        return Generation(
            number=self.generation,
            definition=replace(self.definition, payload="null", owner=None, description=None),
            start=self.start,
            end=end,
            paused=self.paused,
            deleted=self.deleted,
        )

    def next(
        self, *, definition: Definition, start: datetime, paused: bool, deleted: bool, retention: timedelta
    ) -> "Head":
        """Return the next generation, which serves after `start`."""
        return replace(
            self,
            definition=definition,
            generation=self.generation + 1,
            start=start,
            planned_to=start,
            paused=paused,
            deleted=deleted,
            retention=retention,
            generations=(self.up_to(start), *self.generations)[:KEPT_GENERATIONS],
        )


def head_row(head: Head) -> Row:
    pk, sk = head_key(head.queue, head.name)
    kept = {
        "definition": head.definition.to_dict(),
        "retention": head.retention // SECOND,
        "generations": [_generation_dict(each) for each in head.generations],
        "used_to": head.used_to and instant.text(head.used_to),
    }
    flags = {name: True for name in ("paused", "deleted") if getattr(head, name)}
    return {
        "pk": pk,
        "sk": sk,
        "generation": head.generation,
        "start": instant.text(head.start),
        "planned_to": instant.text(head.planned_to),
        "partition": head.partition.number,
        "packed": pack(json.dumps(kept, separators=(",", ":"))),
        **flags,
        **({"ttl": _ttl(head)} if head.deleted else {}),
    }


def _ttl(head: Head) -> int:
    return int((max(head.start, head.used_to or head.start) + DELETED_IS_KEPT).timestamp())


def read_head(row: Row) -> Head:
    """Return the head that a row holds. Raises Unavailable when it cannot be read: it is no guess to make."""
    try:
        return _head(row)
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(f"row {key(row)} cannot be read: {type(error).__name__}: {error}") from None


def _head(row: Row) -> Head:
    pk, name = key(row)
    queue = pk.partition("#")[0]
    packed = row["packed"]
    kept = json.loads(unpack(packed if isinstance(packed, bytes) else b"", most=MOST_HEAD_BYTES))
    return Head(
        queue=queue,
        name=name,
        definition=Definition.from_dict(kept["definition"]),
        generation=int(row["generation"]),
        start=instant.parse(str(row["start"])),
        paused=bool(row.get("paused", False)),
        deleted=bool(row.get("deleted", False)),
        partition=Partition(queue=queue, number=int(row["partition"])),
        planned_to=instant.parse(str(row["planned_to"])),
        retention=timedelta(seconds=kept["retention"]),
        generations=tuple(map(_generation, kept["generations"])),
        used_to=instant.parse(kept["used_to"]) if kept["used_to"] else None,
    )


def _generation_dict(past: Generation) -> dict[str, Any]:
    flags = {name: True for name in ("paused", "deleted") if getattr(past, name)}
    times = {"start": instant.text(past.start), "end": instant.text(past.end)}
    return {"number": past.number, "definition": past.definition.to_dict(), **times, **flags}


def _generation(kept: dict[str, Any]) -> Generation:
    times = {name: instant.parse(kept[name]) for name in ("start", "end")}
    return Generation(**{**kept, **times, "definition": _past_definition(json.dumps(kept["definition"]))})


# Most changes are of a payload, which is not kept: then all are the same.
@lru_cache(maxsize=256)
def _past_definition(text: str) -> Definition:
    return Definition.from_dict(json.loads(text))
