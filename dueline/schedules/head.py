"""The head of a schedule: the one row that says what it is now, and how far its runs are made; and these runs' jobs."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from dueline.core import instant
from dueline.core.job import JobId, Partition, Route, StoredJob
from dueline.core.ports import Table
from dueline.core.queue_settings import PLANNER, QueueSettings
from dueline.core.request import partition_of
from dueline.core.rows import Row, head_key, key, log_unreadable, pack, unpack
from dueline.core.table_writer import TableWriter
from dueline.errors import Unavailable
from dueline.schedules.definition import Definition, Overlap
from dueline.schedules.rule import SECOND, Rule

KEPT_GENERATIONS = 20
# Far more than a head has: a payload is packed into 8 KiB at most.
_MOST_BYTES = 1024 * 1024
# What reading a head raises where the row holds something else.
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Longer than its queue, and then its dead-letter queue, keep a planning job.
DELETED_IS_KEPT = timedelta(days=45)
STEP = timedelta(minutes=15)
# The namespace of all uids that follow from what a schedule is.
_NAMESPACE = uuid.UUID("8a4f2f0e-6f0c-5d0b-9d6e-3f5b5a1c7e21")
_PLANNER_PARTITION = Partition(queue=PLANNER.name, number=0)


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What a schedule is after `start`.

    Its runs up to `planned_to` are submitted: of an earlier generation, up to where the next one starts. They are in
    one partition of its queue, and kept for what the queue's `retention` was when it was made.
    """

    generation: int
    definition: Definition
    partition: Partition
    retention: timedelta
    start: datetime
    planned_to: datetime
    paused: bool = False
    deleted: bool = False

    @property
    def is_live(self) -> bool:
        """Return whether it makes runs: it is neither paused nor deleted."""
        return not (self.paused or self.deleted)


@dataclass(frozen=True, kw_only=True)
class Head(Generation):
    """A schedule as it is now: its latest generation.

    Each change makes a new one. Others of its runs than those up to `planned_to` may be submitted, but none after the
    step that begins there. Its partition changes only when the schedule resumes after a pause or a deletion, and its
    queue no longer has that partition. `generations` are the 20 before, the latest first, without payload and owner. A
    `deleted` head is kept for as long as a schedule of the same name has to go on with the next generation: while runs
    that a change cancelled may be due, up to `used_to`.
    """

    queue: str
    name: str
    generations: tuple[Generation, ...] = ()
    used_to: datetime | None = None

    @property
    def etag(self) -> str:
        """The entity tag of this generation, quoted as HTTP has it. How far it is planned does not change it."""
        return f'"{self.generation}-{instant.epoch_ms(self.start)}"'

    def next(self, *, start: datetime, **changes: Any) -> "Head":
        """Return the next generation, which serves after `start`, with these fields."""
        past = {each.name: getattr(self, each.name) for each in fields(Generation)}
        past |= {"definition": replace(self.definition, payload="null", owner=None), "planned_to": start}
        generations = (Generation(**past), *self.generations)[:KEPT_GENERATIONS]
        changes |= {"generation": self.generation + 1, "start": start, "planned_to": start, "generations": generations}
        return replace(self, **changes)


def head_row(head: Head) -> Row:
    pk, sk = head_key(head.queue, head.name)
    kept = {
        "definition": head.definition.to_dict(),
        "retention": head.retention // SECOND,
        "generations": [_generation_dict(each) for each in head.generations],
        "used_to": head.used_to and instant.text(head.used_to),
    }
    ttl = max(head.start, head.used_to or head.start) + DELETED_IS_KEPT
    return {
        "pk": pk,
        "sk": sk,
        "generation": head.generation,
        "start": instant.text(head.start),
        "planned_to": instant.text(head.planned_to),
        "partition": head.partition.number,
        "packed": pack(json.dumps(kept, separators=(",", ":"))),
        **_flags(head),
        **({"ttl": int(ttl.timestamp())} if head.deleted else {}),
    }


def _flags(head: Generation) -> dict[str, bool]:
    return {name: True for name in ("paused", "deleted") if getattr(head, name)}


def read_head(row: Row) -> Head:
    """Return the head that a row holds. Raises Unavailable when it cannot be read."""
    try:
        return _head(row)
    except _UNREADABLE as error:
        raise Unavailable(f"row {key(row)} cannot be read: {type(error).__name__}: {error}") from None


def _head(row: Row) -> Head:
    pk, name = key(row)
    queue = pk.partition("#")[0]
    kept = json.loads(unpack(row["packed"], most=_MOST_BYTES))  # type: ignore[arg-type]  # it may hold anything
    return Head(
        queue=queue,
        name=name,
        definition=Definition.from_row(kept["definition"]),
        generation=int(row["generation"]),
        start=instant.parse(str(row["start"])),
        paused=bool(row.get("paused", False)),
        deleted=bool(row.get("deleted", False)),
        partition=Partition(queue=queue, number=int(row["partition"])),
        planned_to=instant.parse(str(row["planned_to"])),
        retention=timedelta(seconds=kept["retention"]),
        generations=tuple(_generation(each, queue) for each in kept["generations"]),
        used_to=instant.parse(kept["used_to"]) if kept["used_to"] else None,
    )


def head_pages(queue: str, *, table: Table, limit: int) -> Iterator[Sequence[Row]]:
    """Yield the rows of all schedules of a queue, so many at a time."""
    after, more = "", True
    while more:
        page = table.heads(queue, after=after, limit=limit)
        yield page.rows
        after, more = str(page.rows[-1]["sk"]) if page.rows else after, page.more


def readable_heads(head_rows: Iterable[Row]) -> tuple[list[Head], int]:
    """Return the heads that can be read, and how many cannot, which are logged."""
    heads, unreadable = list[Head](), list[Row]()
    for row in head_rows:
        try:
            heads.append(read_head(row))
        except Unavailable:
            unreadable.append(row)
    return heads, log_unreadable(unreadable)


def _generation_dict(past: Generation) -> dict[str, Any]:
    times = {"start": instant.text(past.start), "end": instant.text(past.planned_to)}
    runs = {"partition": past.partition.number, "retention": past.retention // SECOND}
    return {"number": past.generation, "definition": past.definition.to_dict(), **runs, **times, **_flags(past)}


def _generation(kept: dict[str, Any], queue: str) -> Generation:
    return Generation(
        generation=kept["number"],
        definition=Definition.from_row(kept["definition"]),
        partition=Partition(queue=queue, number=int(kept["partition"])),
        retention=timedelta(seconds=kept["retention"]),
        start=instant.parse(kept["start"]),
        planned_to=instant.parse(kept["end"]),
        paused=kept.get("paused", False),
        deleted=kept.get("deleted", False),
    )


# The jobs of a schedule's runs, which follow from its head and a time alone: who submits one again submits the same.
def occurrence(head: Head, scheduled_for: datetime) -> StoredJob:
    """Return the job of a run: by the table's route, due at its scheduled time plus the schedule's jitter.

    Its uid is the UUIDv5 of queue, schedule, generation and scheduled time.
    """
    id = occurrence_id(head, scheduled_for)
    return StoredJob(
        id=id,
        payload=head.definition.payload,
        expires=id.due + head.retention,
        kind=head.definition.kind,
        tenant=head.definition.tenant,
        priority=head.definition.priority,
        schedule=head.name,
        scheduled_for=scheduled_for,
        exclusive=head.definition.overlap is Overlap.SKIP,
    )


def occurrence_id(head: Head, scheduled_for: datetime, *, past: Generation | None = None) -> JobId:
    """Return the id of an occurrence of a head, or of an earlier generation of it."""
    generation = past or head
    due = scheduled_for + jitter(head.queue, head.name, generation.definition)
    uid = _uid(head, generation.generation, instant.text(scheduled_for))
    return JobId(partition=generation.partition, route=Route.TABLE, due=due, uid=uid)


def jitter(queue: str, name: str, definition: Definition) -> timedelta:
    """Return by how much each run of a schedule is due after its time: its own part of the definition's jitter.

    It is in whole milliseconds, and follows from the SHA-256 of queue and name.
    """
    digest = hashlib.sha256(f"{queue}/{name}".encode()).digest()
    window = definition.jitter // timedelta(milliseconds=1)
    return timedelta(milliseconds=int.from_bytes(digest[:8]) * window >> 64)


def step(rule: Rule, planned_to: datetime) -> datetime:
    """Return up to where the step that begins at `planned_to` plans: 15 minutes on, or at the first run after it.

    It is the later of the two, and never depends on the clock.
    """
    return max(planned_to + STEP, next(rule.after(planned_to), planned_to))


def planning_job(head: Head, planned_from: datetime, *, now: datetime) -> StoredJob | None:
    """Return the job that has the step from `planned_from` planned; None if no run follows.

    It is due 15 minutes before the first run after `planned_from`, and kept for a week from then or from now on.
    """
    first = next(head.definition.rule.after(planned_from), None)
    if first is None:
        return None
    due, uid = first - STEP, _uid(head, head.generation, f"plan/{instant.text(planned_from)}")
    step_of = {"generation": head.generation, "from": instant.text(planned_from)}
    return StoredJob(
        id=JobId(partition=_PLANNER_PARTITION, route=Route.TABLE, due=due, uid=uid),
        payload=json.dumps({"queue": head.queue, "schedule": head.name, **step_of}, separators=(",", ":")),
        expires=max(due, now) + PLANNER.retention,
        # One queue's schedules do not hold up another's: it is the message group.
        tenant=head.queue,
    )


def between(rule: Rule, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the scheduled times after `after`, up to `until`."""
    return takewhile(lambda at: at <= until, rule.after(after))


def partition_of_schedule(queue: QueueSettings, name: str) -> Partition:
    """Return the partition of all runs of a schedule that is created now."""
    return Partition(queue=queue.name, number=partition_of(f"{queue.name}/{name}", queue.partitions))


def _uid(head: Head, generation: int, what: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{head.queue}/{head.name}/{generation}/{what}"))


def submit(jobs: Sequence[StoredJob], *, route: TableWriter, until: float) -> None:
    """Write jobs where nothing may go on before all of them are there; start no send after `until` (monotonic).

    Safe to repeat. Raises Throttled or Unavailable unless all are written, and sent where no tick will. A job that can
    never be sent is parked, which for a planning job nobody would notice.
    """
    if not jobs:
        return
    written = route.write(jobs, until=until)
    if written.undone:
        faults = "; ".join(written.faults)
        raise written.cause or Unavailable(f"{len(written.undone)} jobs were not submitted: {faults}")
    for parked in written.parked:
        if parked.job.id.queue == PLANNER.name:
            raise Unavailable(f"planning job {parked.job.id} was parked: {parked.reason}")
