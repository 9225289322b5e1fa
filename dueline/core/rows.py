"""Rows: what is written into the tables, under which keys. docs/architecture.md has them all, as a table.

`#cancelled` and `#handled` sort before `#job`: a reader in order learns what to skip before it. A `#handled` row stands
only where a job was sent or parked by the late path, or by a tick beyond its cursor. A direct job has no `#job` row,
and `~d` behind the `{uid}` of its others. `moved_to` is the id of the job that took the cancelled one's place, where it
was rescheduled. `packed` is the payload compressed, where that saves a tenth of it.
`offloaded_bytes` stands only where the payload is a pointer: the size of what it points to. Without `rate` there is no
limit; `until` is the instant, in microseconds since 1970, up to which slots of a rate are taken.
"""

import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from dueline.core import instant
from dueline.core.job import MAX_PAYLOAD_BYTES, MAX_RETENTION, JobId, Partition, Route, StoredJob, origin_fields
from dueline.core.message import check_readable
from dueline.core.queue_settings import Rate
from dueline.core.trace import TraceContext
from dueline.errors import InvalidJob, JobNotFound

_logger = logging.getLogger("dueline")

Row = Mapping[str, str | int | bool | bytes]
Key = tuple[str, str]

STATE = "!state"
IDEMPOTENCY = "!call"
NAME = "!name"
JOB = "job"
CANCELLED = "cancelled"
HANDLED = "handled"
PARKED = "parked"
FIRST = "0"

# DynamoDB's TTL keeps no order: a cancellation collected before its job would bring the job back.
# The longest retention, not the queue's own, because a queue's may have been lowered since.
CANCELLATION_OUTLIVES_RETENTION = timedelta(days=7)
# Not the queue's own partitions: a key must be found again when their number has grown.
IDEMPOTENCY_PARTITIONS = 32
PARKED_IS_KEPT = timedelta(days=14)
MAX_KEY_BYTES = 1024
MOVE_PENDING = "!move-pending"
MOVE_TARGET = "!move-target"


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionState:
    """How far a partition is handed over, and who is at it.

    All jobs due up to `fence` are being handed over; all rows up to the key `cursor` are. Both only grow,
    and both lie below every key until the first tick. `lease` is the instant up to which `owner` has it.
    """

    fence: str = ""
    cursor: str = FIRST
    owner: str = ""
    lease: str = ""


def key(row: Row) -> Key:
    return str(row["pk"]), str(row["sk"])


def in_state_table(key: Key) -> bool:
    """Return whether a row is in the table of what is updated, not in the one of what is only added."""
    pk, sk = key
    return sk == STATE or pk == WATCH or pk.endswith(("#control", "#rate", "#schedules", "#runs"))


def state_key(partition: Partition) -> Key:
    return str(partition), STATE


def job_key(id: JobId) -> Key:
    return key_of(id, JOB)


def cancellation_key(id: JobId) -> Key:
    return key_of(id, CANCELLED)


def handled_key(id: JobId) -> Key:
    return key_of(id, HANDLED)


def parked_key(id: JobId) -> Key:
    return key_of(id, PARKED)


def outcome_key(id: JobId) -> Key:
    return outcomes_of(id.partition), f"{instant.text(id.due)}#{id.uid}"


def outcomes_of(partition: Partition) -> str:
    return f"{partition.queue}#outcome#{partition.number}"


def idempotency_key(queue: str, key: str) -> Key:
    return f"{queue}#keys{zlib.crc32(key.encode()) % IDEMPOTENCY_PARTITIONS}", f"{IDEMPOTENCY}#{key}"


def name_key(queue: str, key: str) -> Key:
    return idempotency_key(queue, key)[0], f"{NAME}#{key}"


def is_name(key: Key) -> bool:
    """Return whether a row is that of a job's key."""
    return key[1].startswith(f"{NAME}#")


def end_of(fence: str) -> str:
    """Return a sort key above every row that is due up to `fence`, and below any later one."""
    return f"{fence}#~"


def due_at(cursor: str) -> datetime | None:
    """Return the due time up to which a cursor has handed over, None before the first."""
    try:
        return instant.parse(cursor.partition("#")[0])
    except ValueError:
        return None


def prefix_and_kind(sort_key: str) -> tuple[str, str]:
    """Return which job a row is of (`{due}#{uid}`, of a direct job `{due}#{uid}~d`), and which of its rows it is."""
    prefix, _, kind = sort_key.rpartition("#")
    return prefix, kind


def has_room(prefix: str) -> bool:
    """Return whether each kind of row can be written beside one: only whose key is no job's may leave no room."""
    return len(f"{prefix}#{CANCELLED}".encode()) <= MAX_KEY_BYTES


def job_row(job: StoredJob) -> Row:
    pk, sk = job_key(job.id)
    offloaded = {} if job.offloaded_bytes is None else {"offloaded_bytes": job.offloaded_bytes}
    origin = {} if job.origin is None else {"schedule": job.origin}
    trace = {} if job.trace is None else job.trace.headers
    key = {} if job.key is None else {"key": job.key}
    rest: Row = {"pk": pk, "sk": sk, "ttl": _seconds(job.expires), **key, **_terms(job), **offloaded, **origin}
    return smaller_of({**rest, **trace}, job.payload)


def payload_bytes(row: Row) -> int:
    """Return the bytes that a job's row keeps of its payload, compressed or not."""
    packed = row.get("packed")
    return len(packed) if isinstance(packed, bytes) else len(str(row["payload"]).encode())


def cancellation_row(id: JobId, *, at: datetime, moved_to: JobId | None = None) -> Row:
    pk, sk = cancellation_key(id)
    # Where it moves a job, it is needed as long as either: the old one's row is not to be sent, the new one is found.
    latest = id.due if moved_to is None else max(id.due, moved_to.due)
    ttl = _seconds(latest, later=MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION)
    moved = {"moved_to": str(moved_to)} if moved_to else {}
    return {"pk": pk, "sk": sk, "at": instant.text(at), "exact": moved_to is not None, **moved, "ttl": ttl}


def is_promised(cancellation: Row) -> bool:
    """Return whether a cancellation promises that its job never reaches its queue."""
    return bool(cancellation.get("exact"))


def is_cancellation_kept(id: JobId, *, now: datetime) -> bool:
    """Return whether a job's cancellation, if there ever was one, still exists: its TTL is days away."""
    return now < id.due + MAX_RETENTION


def handled_row(job: StoredJob, *, dispatched: bool) -> Row:
    pk, sk = handled_key(job.id)
    # Like a cancellation: a note that is collected before its job would bring the job back.
    ttl = _seconds(job.expires, later=CANCELLATION_OUTLIVES_RETENTION)
    return {"pk": pk, "sk": sk, "dispatched": dispatched, "ttl": ttl}


def is_dispatched(handled: Row | None) -> bool:
    """Return whether a note that a job was handled says that it was sent, and not parked."""
    return bool(handled and handled.get("dispatched"))


def handled_note(of_row: Key, *, at: datetime) -> Row:
    """Return the note that a row that cannot be read was parked. It outlives any retention."""
    prefix, _ = prefix_and_kind(of_row[1])
    ttl = _seconds(at, later=MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION)
    return {"pk": of_row[0], "sk": f"{prefix}#{HANDLED}", "dispatched": False, "ttl": ttl}


def idempotency_row(job: StoredJob, key: str, *, payload_hash: str) -> Row:
    pk, sk = idempotency_key(job.id.queue, key)
    claim: Row = {"pk": pk, "sk": sk, "id": str(job.id), "payload_hash": payload_hash, "done": False}
    return {**claim, **_terms(job), "ttl": _seconds(job.expires)}


def name_row(job: StoredJob, *, call: str, content: str) -> Row:
    """Return the row of a job's key, which was not submitted yet; `call` is "" of a call without a name."""
    return {**moved_key_row(job), "call": call, "content": content, "done": False}


def moved_key_row(job: StoredJob) -> Row:
    """Return what a move writes into the row of a job's key: it lives as long as the job that it names."""
    pk, sk = name_key(job.id.queue, job.key or "")
    return {"pk": pk, "sk": sk, "id": str(job.id), "done": True, "ttl": _seconds(job.expires)}


def _terms(job: StoredJob) -> dict[str, str | int]:
    texts = {name: value for name in ("kind", "tenant") if (value := getattr(job, name)) is not None}
    return {**texts, **({} if job.priority == 1 else {"priority": job.priority})}


def parked_row(of_job: Key, *, reason: str, at: datetime) -> Row:
    """Return what notes that a job's row of that key was parked, whatever is in it."""
    pk, sk = of_job
    ttl = _seconds(at, later=PARKED_IS_KEPT)
    return {"pk": pk, "sk": f"{prefix_and_kind(sk)[0]}#{PARKED}", "reason": reason, "ttl": ttl}


def read_job(row: Row) -> StoredJob:
    """Return the job that a row holds. Raises InvalidJob, saying what is wrong, when the row cannot be read."""
    try:
        check_readable(row)
        job = StoredJob(
            id=_id(str(row["pk"]), str(row["sk"])),
            payload=_payload_of(row),
            expires=instant.from_epoch_ms(int(row["ttl"]) * 1000),
            **{name: str(row[name]) for name in ("key", "kind", "tenant") if name in row},  # type: ignore[arg-type]
            priority=int(row.get("priority", 1)),
            offloaded_bytes=int(row["offloaded_bytes"]) if "offloaded_bytes" in row else None,
            trace=TraceContext.from_headers(row),
            **origin_fields(row.get("schedule")),
        )
    except KeyError as missing:
        raise InvalidJob(f"row {key(row)} has no {missing}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidJob(f"row {key(row)} cannot be read: {error}") from None
    if job_key(job.id) != key(row):
        raise InvalidJob(f"row {key(row)} cannot be read: its key is not written as that of job {job.id}")
    if not job.id.is_well_formed:
        raise InvalidJob(f"row {key(row)} cannot be read: its key makes no id that can be looked up")
    return job


def log_unreadable(skipped: Sequence[Row]) -> int:
    """Log once a call that rows were left out that cannot be read, with the first one's key; return how many."""
    if skipped:
        _logger.warning("rows that cannot be read were left out: %d; the first is %r", len(skipped), key(skipped[0]))
    return len(skipped)


def read_state(row: Row | None) -> PartitionState:
    if row is None:
        return PartitionState()
    return PartitionState(
        fence=str(row.get("fence", "")),
        cursor=str(row.get("cursor", FIRST)),
        owner=str(row.get("owner", "")),
        lease=str(row.get("lease", "")),
    )


def is_live(row: Row | None, *, now: datetime) -> bool:
    """Return whether a row exists and is not past its TTL, after which DynamoDB may take days to delete it.

    DynamoDB never deletes a row whose ttl is missing or not a number.
    """
    if row is None:
        return False
    ttl: object = row.get("ttl")
    return isinstance(ttl, bool) or not isinstance(ttl, int | Decimal) or ttl > now.timestamp()


def _payload_of(row: Row) -> str:
    packed = row.get("packed")
    return unpack(packed, most=MAX_PAYLOAD_BYTES) if isinstance(packed, bytes) else str(row["payload"])


def key_of(id: JobId, kind: str) -> Key:
    # Ids that differ in their routes alone are of two jobs. It must sort below `end_of`.
    route = "~d" if id.route is Route.DIRECT else ""
    return str(id.partition), f"{instant.text(id.due)}#{id.uid}{route}#{kind}"


def _id(pk: str, sk: str) -> JobId:
    queue, number = pk.split("#")
    due, uid, _ = sk.split("#")
    partition = Partition(queue=queue, number=int(number))
    return JobId(partition=partition, route=Route.TABLE, due=instant.parse(due), uid=uid)


def _seconds(at: datetime, *, later: timedelta = timedelta()) -> int:
    # Added as seconds: an instant later than the year 9999 cannot be written otherwise.
    return int(at.timestamp() + later.total_seconds())


# Rows of moves are put before a move's transaction. DynamoDB does not say when others see the rows of a transaction
# that is not answered yet. So a reader of one of these without its counterpart confirms by a conditional write
# (Table.read_barrier), which the transaction keeps waiting. `#!move-pending` is of a job that may have been moved: its
# cancellation may not be visible yet. `#!move-target` is of one that may have replaced another: its own row may not be
# visible yet. By their `!` both sort before their counterparts. A cancellation's `moved_to` says how a move ended.
def move_pending_key(id: JobId) -> Key:
    return key_of(id, MOVE_PENDING)


def move_row(id: JobId, kind: str, *, at: datetime) -> Row:
    """Return a MOVE_PENDING or MOVE_TARGET row, which is kept for as long as a cancellation of the same job."""
    pk, sk = key_of(id, kind)
    cancellation = cancellation_row(id, at=at)
    return {"pk": pk, "sk": sk, "at": cancellation["at"], "ttl": cancellation["ttl"]}


def moved_to(cancellation: Row) -> JobId | None:
    """Return the job that replaced a cancelled one, or None.

    None, too, if it cannot be read or is of another queue: who may write the rows of one queue may write it there.
    """
    try:
        moved = JobId.parse(str(cancellation.get("moved_to")))
    except JobNotFound:
        return None
    queue, _, _ = str(cancellation["pk"]).rpartition("#")
    return moved if moved.queue == queue else None


# What is shorter saves little, and its row is read by people too.
PACKED_FROM = 128

# zlib clears its tables each time, which costs more than to compress a small text: 72 of 80 microseconds for 1 KB.
# With a window of 4 KiB and tables that fit it there are 9, and the same bytes come out.
_SMALL_BYTES, _SMALL_WINDOW_BITS, _SMALL_MEMORY_LEVEL = 1 << 12, 12, 5


def pack(text: str) -> bytes:
    """Return a text compressed, in the format of zlib (RFC 1950)."""
    plain = text.encode()
    if len(plain) > _SMALL_BYTES:
        return zlib.compress(plain)
    packer = zlib.compressobj(wbits=_SMALL_WINDOW_BITS, memLevel=_SMALL_MEMORY_LEVEL)
    return packer.compress(plain) + packer.flush()


def smaller_of(rest: Row, payload: str) -> Row:
    """Return a row with its payload as it is, or packed if that saves a tenth of it."""
    if len(payload) >= PACKED_FROM:
        packed = pack(payload)
        if 10 * len(packed) <= 9 * len(payload.encode()):
            return {**rest, "packed": packed}
    return {**rest, "payload": payload}


def unpack(packed: bytes, *, most: int) -> str:
    """Return the text that was packed.

    Raises ValueError when that is not what it holds, or when it has more than `most` bytes: no more are unpacked.
    """
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise ValueError(f"its compressed payload is broken: {error}") from None
    if len(unpacked) > most:
        raise ValueError(f"its compressed payload has over {most} bytes: at most {most} are allowed")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("its compressed payload is broken: it does not end where its data does")
    return unpacked.decode()


PAUSED = "!paused"
RATE = "!rate"
SLOTS = "!slots"
TURNS = "!turns"
RUN_IS_KEPT = timedelta(days=1)


def paused_key(queue: str) -> Key:
    return f"{queue}#control", PAUSED


def rate_key(queue: str) -> Key:
    return f"{queue}#control", RATE


def slots_key(queue: str, rate_set: str) -> Key:
    """Return the key of the slots that a queue's workers have taken under the rate that was set then.

    Not under `#control`: workers write it, and a right to write one row of a partition key is one to write all of them.
    """
    return f"{queue}#rate", f"{SLOTS}#{rate_set}"


def turns_key(queue: str, rate_set: str) -> Key:
    """Return the key of the turns in which a queue's workers receive messages under a slow rate."""
    return f"{queue}#rate", f"{TURNS}#{rate_set}"


def run_key(queue: str, schedule: str) -> Key:
    """Return the key of the lock that the running job of a schedule has, `{job, until}`, if one at a time may run.

    `until` is in milliseconds since 1970. Workers write it: no other row has its partition key.
    """
    return f"{queue}#runs", schedule


def paused_row(queue: str, *, paused: bool, at: datetime) -> Row:
    pk, sk = paused_key(queue)
    return {"pk": pk, "sk": sk, "paused": paused, "at": instant.text(at)}


def rate_row(queue: str, rate: Rate | None, *, at: datetime) -> Row:
    pk, sk = rate_key(queue)
    limit = {} if rate is None else {"rate": str(rate)}
    return {"pk": pk, "sk": sk, **limit, "at": instant.text(at)}


# A transaction has 100 actions: two may check the fence, one puts the head and one counts.
CHANGE_CANCELLATIONS = 95
# Of a queue, but for those that are deleted.
MOST_SCHEDULES = 10_000
COUNT = "!count"
# Sorts after the count, and before each name.
BEFORE_HEADS = "!~"


def schedules_of(queue: str) -> str:
    """Return the partition key of a queue's schedules."""
    return f"{queue}#schedules"


def head_key(queue: str, name: str) -> Key:
    return schedules_of(queue), name


def count_key(queue: str) -> Key:
    return schedules_of(queue), COUNT


def tzdata_key(queue: str) -> Key:
    """Return the key of the row, in the table of jobs, that says by which tzdata a queue's planning jobs are due."""
    return f"!tzdata#{queue}", "!tzdata"


# What the watches note, in the state table: when each of them ran last.
WATCH = "!watch"
TICKS, SCHEDULES = "ticks", "schedules"
WATCH_NOTES: tuple[Key, ...] = ((WATCH, TICKS), (WATCH, SCHEDULES))


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchNote:
    """When a watch ran last, and how much there was."""

    at: datetime
    count: int


def read_watch_notes(rows: Mapping[Key, Row]) -> dict[str, WatchNote]:
    """Return the notes among rows, by the names of the watches."""
    noted = {key[1]: rows[key] for key in WATCH_NOTES if key in rows}
    return {
        watch: WatchNote(at=instant.parse(str(row["at"])), count=int(str(row["count"]))) for watch, row in noted.items()
    }
