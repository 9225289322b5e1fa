"""Rows: the table's schema, what is written under which key.

| row             | pk                    | sk                      | holds                              |
|-----------------|-----------------------|-------------------------|------------------------------------|
| job             | `{queue}#{partition}` | `{due}#{uid}#job`       | payload or packed, schedule, ttl,  |
|                 |                       |                         | priority, offloaded_bytes, tenant, |
|                 |                       |                         | traceparent, tracestate, v: schema |
| cancellation    | same                  | `{due}#{uid}#cancelled` | at, exact, moved_to, ttl           |
| handled         | same                  | `{due}#{uid}#handled`   | dispatched, ttl                    |
| parked          | same                  | `{due}#{uid}#parked`    | reason, ttl                        |
| asked, awaited  | same                  | `{due}#{uid}#asked`     | at, ttl (move_rows.py)             |
| partition state | same                  | `!state`                | fence, cursor, owner, lease        |
| idempotency key | `{queue}#keys{0..31}` | `!key#{key}`            | id, payload_hash, done, ttl        |
| outcome         | `{queue}#outcome#`    | `{due}#{uid}`           | state, attempts, started, ended,   |
|                 | `{partition}`         |                         | error, ttl                         |
| pause           | `{queue}#control`     | `!paused`               | paused, at                         |
| rate            | same                  | `!rate`                 | rate, at                           |
| slots           | `{queue}#rate`        | `!slots#{rate's at}`    | until, ttl                         |

`#cancelled` and `#handled` sort before `#job`: whoever reads in order knows what to skip before meeting it.
A `#handled` row stands only where the late path sent or parked a job. A direct job has no `#job` row, and
`~d` behind the `{uid}` of its others.
`moved_to` is the id of the job that took the cancelled one's place, where it was rescheduled.
`packed` is the payload compressed, where that saves a tenth of the row or a write unit. `offloaded_bytes` stands only
where the payload is a pointer: the size of what it points to; `schedule` (nominal.py) and each of the two of a trace
only where there is one. The last three rows control a queue's workers (control_rows.py): without `rate` there is no
limit, and `until` is the instant, in microseconds since 1970, up to which slots of a rate are taken. A deployment of
before left states among its jobs (aws/dynamodb/before.py).
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.errors import InvalidJob
from dueline.model import instant, nominal
from dueline.model.job import MAX_PAYLOAD_BYTES, MAX_RETENTION, Job, JobId, Partition, Route
from dueline.model.packing import smaller_of, unpack
from dueline.model.schema import check_readable
from dueline.model.trace import TraceContext

Row = Mapping[str, str | int | bool | bytes]
Key = tuple[str, str]

STATE = "!state"
IDEMPOTENCY = "!key"
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
    """Tell whether a row is in the table of what is updated, not in the one of what is only added."""
    pk, sk = key
    return sk == STATE or pk.endswith(("#control", "#rate", "#schedules", "#runs"))


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
    return f"{id.queue}#outcome#{id.partition.number}", f"{instant.text(id.due)}#{id.uid}"


def idempotency_key(queue: str, key: str) -> Key:
    return f"{queue}#keys{zlib.crc32(key.encode()) % IDEMPOTENCY_PARTITIONS}", f"{IDEMPOTENCY}#{key}"


def end_of(fence: str) -> str:
    """Return a sort key above every row that is due up to `fence`, and below any later one."""
    return f"{fence}#~"


def due_at(cursor: str) -> datetime | None:
    """Return the due time up to which a cursor has handed over, None if it has not begun."""
    try:
        return instant.parse(cursor.partition("#")[0])
    except ValueError:
        return None


def prefix_and_kind(sort_key: str) -> tuple[str, str]:
    """Return which job a row is of (`{due}#{uid}`, of a direct job `{due}#{uid}~d`), and which of its rows it is."""
    prefix, _, kind = sort_key.rpartition("#")
    return prefix, kind


def job_row(job: Job) -> Row:
    pk, sk = job_key(job.id)
    tenant = {} if job.tenant is None else {"tenant": job.tenant}
    priority = {} if job.priority == 1 else {"priority": job.priority}
    offloaded = {} if job.offloaded_bytes is None else {"offloaded_bytes": job.offloaded_bytes}
    origin = {} if job.origin is None else {"schedule": job.origin}
    trace = {} if job.trace is None else job.trace.headers
    rest: Row = {"pk": pk, "sk": sk, "ttl": _seconds(job.expires), **tenant, **priority, **offloaded, **origin}
    return smaller_of({**rest, **trace}, job.payload)


def payload_bytes(row: Row) -> int:
    """Return the bytes that a job's row keeps of its payload, compressed or not."""
    packed = row.get("packed")
    return len(packed) if isinstance(packed, bytes) else len(str(row["payload"]).encode())


def cancellation_row(id: JobId, *, at: datetime, moved_to: JobId | None = None) -> Row:
    pk, sk = cancellation_key(id)
    ttl = _seconds(id.due, later=MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION)
    moved = {"moved_to": str(moved_to)} if moved_to else {}
    return {"pk": pk, "sk": sk, "at": instant.text(at), "exact": moved_to is not None, **moved, "ttl": ttl}


def is_promised(cancellation: Row) -> bool:
    """Return whether a cancellation promises that its job never reaches its queue."""
    return bool(cancellation.get("exact"))


def is_cancellation_kept(id: JobId, *, now: datetime) -> bool:
    """Return whether a job's cancellation, if there ever was one, still exists: its TTL is days away."""
    return now < id.due + MAX_RETENTION


def handled_row(job: Job, *, dispatched: bool) -> Row:
    pk, sk = handled_key(job.id)
    # Like a cancellation: a note that is collected before its job would bring the job back.
    ttl = _seconds(job.expires, later=CANCELLATION_OUTLIVES_RETENTION)
    return {"pk": pk, "sk": sk, "dispatched": dispatched, "ttl": ttl}


def idempotency_row(job: Job, key: str, *, payload_hash: str) -> Row:
    pk, sk = idempotency_key(job.id.queue, key)
    ttl = _seconds(job.expires)
    return {"pk": pk, "sk": sk, "id": str(job.id), "payload_hash": payload_hash, "done": False, "ttl": ttl}


def parked_row(id: JobId, *, reason: str, at: datetime) -> Row:
    pk, sk = parked_key(id)
    return {"pk": pk, "sk": sk, "reason": reason, "ttl": _seconds(at, later=PARKED_IS_KEPT)}


def read_job(row: Row) -> Job:
    """Return the job that a row holds. Raises InvalidJob, saying what is wrong, when the row cannot be read."""
    try:
        check_readable(row)
        job = Job(
            id=_id(str(row["pk"]), str(row["sk"])),
            payload=_payload_of(row),
            expires=instant.from_epoch_ms(int(row["ttl"]) * 1000),
            tenant=str(row["tenant"]) if "tenant" in row else None,
            priority=int(row.get("priority", 1)),
            offloaded_bytes=int(row["offloaded_bytes"]) if "offloaded_bytes" in row else None,
            trace=TraceContext.from_headers(row),
            **nominal.fields(row.get("schedule")),
        )
    except KeyError as missing:
        raise InvalidJob(f"row {key(row)} has no {missing}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidJob(f"row {key(row)} cannot be read: {error}") from None
    if job_key(job.id) != key(row):
        raise InvalidJob(f"row {key(row)} cannot be read: its key is not written as that of job {job.id}")
    return job


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
    """Return whether a row exists and is not past its TTL, after which DynamoDB may take days to delete it."""
    return row is not None and int(row["ttl"]) > now.timestamp()


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
    # Added as seconds: an instant later than the year 9999 cannot be told otherwise.
    return int(at.timestamp() + later.total_seconds())
