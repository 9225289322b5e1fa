"""A job and its id, which alone says where to find it."""

import re
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from dueline.core import instant
from dueline.core.text import shown
from dueline.core.trace import TraceContext
from dueline.errors import InvalidJob, InvalidSchedule, JobNotFound, PayloadTooLarge, QueueNotFound

# These are checked of rows too, when they are read: a lower one would refuse what is stored.
MAX_PAYLOAD_BYTES = 256 * 1024
MAX_OFFLOADED_BYTES = 10 * 1024 * 1024
# The days that an offloaded payload may be kept, up to 10 years and what comes on top: powers of two.
KEEP_DAYS = tuple(2**power for power in range(5, 13))
MAX_PARTITIONS = 999
MAX_RETENTION = timedelta(days=30)
MAX_TENANT_CHARACTERS = 128
# What SQS takes as MessageGroupId.
# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
_TENANT = rf"[!-~]{{1,{MAX_TENANT_CHARACTERS}}}"
MAX_KEY_CHARACTERS = 255
MAX_PRIORITY = 5

QUEUE_NAME = r"[a-z0-9-]{1,60}"
KIND = r"[a-z0-9._-]{1,64}"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# What an id looks like: {queue}.{partition}.{route}.{due in ms}.{UUID}.
FORM = rf"({QUEUE_NAME})\.(0|[1-9][0-9]{{0,2}})\.([dt])\.(0|[1-9][0-9]{{0,12}})\.({_UUID})"
_ID, _QUEUE_NAME = re.compile(FORM), re.compile(QUEUE_NAME)
# No dot comes first: clients shorten a path with `.` or `..` in it.
SCHEDULE_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_NAME_CHARACTERS = "a name has 1 to 64 of a-z, A-Z, 0-9, -, _ and ., which may not come first"
_SKIP = "!skip"
_ORIGIN = re.compile(rf"({SCHEDULE_NAME})@([^!]+)({_SKIP})?")


def new_uid() -> str:
    return str(uuid.uuid4())


class Route(StrEnum):
    """How a job gets to its queue, decided once, when it is submitted: straight to SQS, or through the table."""

    DIRECT = "d"
    TABLE = "t"


class State(StrEnum):
    """The state of a job. Only jobs of queues that `track` are ever RUNNING, SUCCEEDED, FAILED or SKIPPED.

    ACCEPTED answers a submission that waits in the inbound queue. UNRECORDED answers a look-up that finds no record.
    """

    ACCEPTED = "accepted"
    SCHEDULED = "scheduled"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    CANCEL_REQUESTED = "cancel_requested"
    PARKED = "parked"
    UNRECORDED = "unrecorded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """A slice of one queue's jobs in the table. Each tick reads one."""

    queue: str
    number: int

    def __str__(self) -> str:
        return f"{self.queue}#{self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobId:
    """Where a job is found: its partition, its route, its due time and a random UUID."""

    partition: Partition
    route: Route
    due: datetime
    uid: str

    def __hash__(self) -> int:
        # It is random: no more is needed to distinguish jobs, and ingest looks into sets of them a dozen times a job.
        return hash(self.uid)

    @property
    def queue(self) -> str:
        return self.partition.queue

    def __str__(self) -> str:
        due_ms = instant.epoch_ms(self.due)
        return f"{self.queue}.{self.partition.number}.{self.route}.{due_ms}.{self.uid}"

    @property
    def is_well_formed(self) -> bool:
        """Whether `parse` reads what `str` writes: anyone may write a table's row under any key."""
        return _ID.fullmatch(str(self)) is not None

    @classmethod
    def parse(cls, text: str) -> "JobId":
        """Return the id in a text. Raises JobNotFound when it is not of the `FORM` of one."""
        match = _ID.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise JobNotFound(f"no job has the id {shown(text, most=200)}: it is not of the form of an id")
        queue, number, route, due_ms, uid = match.groups()
        due = instant.from_epoch_ms(int(due_ms))
        partition = Partition(queue=queue, number=int(number))
        return cls(partition=partition, route=Route(route), due=due, uid=uid)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredJob:
    """A payload, which is JSON text, with its id and the instant after which it is no longer sent.

    `key` is its name, under which it can be found, moved and cancelled. `kind` says which handler of its queue runs it.
    `tenant` is the message group of SQS fair queues. `priority` is from 1, the most urgent; each has an SQS queue of
    its own. If the payload is kept in S3, `offloaded_bytes` is its size and `payload` the pointer to it. `trace` is the
    trace context in which the job was scheduled, if any. A job that a schedule made has its name and the instant that
    its rule names, `scheduled_for`; one that is `exclusive` is skipped while another job of its schedule runs.
    """

    id: JobId
    payload: str
    expires: datetime
    key: str | None = None
    kind: str | None = None
    tenant: str | None = None
    priority: int = 1
    offloaded_bytes: int | None = None
    trace: TraceContext | None = None
    schedule: str | None = None
    scheduled_for: datetime | None = None
    exclusive: bool = False

    def __hash__(self) -> int:
        return hash(self.id.uid)

    def __post_init__(self) -> None:
        if self.size > MAX_PAYLOAD_BYTES:
            raise PayloadTooLarge(f"payload has {self.size} bytes: at most {MAX_PAYLOAD_BYTES} are allowed")
        if not self.payload:
            raise InvalidJob("payload is empty: it must be JSON")
        if self.key is not None:
            checked_key(self.key)
        check_kind(self.kind)
        check_tenant(self.tenant)
        check_priority(self.priority)
        _check_origin(self.schedule, self.scheduled_for, exclusive=self.exclusive)
        if self.offloaded_bytes is not None and self.offloaded_bytes < 1:
            raise InvalidJob(
                f"a payload that is kept elsewhere has {self.offloaded_bytes} bytes: it must have 1 or more"
            )

    @property
    def origin(self) -> str | None:
        """What its row and its message say of the schedule that made it, if one did: a worker reads no schedule."""
        if self.schedule is None or self.scheduled_for is None:
            return None
        return f"{self.schedule}@{instant.text(self.scheduled_for)}{_SKIP if self.exclusive else ''}"

    @property
    def size(self) -> int:
        """The payload's size in bytes, as SQS and DynamoDB count it."""
        return len(self.payload) if self.payload.isascii() else len(self.payload.encode())


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitResult:
    """A job that was submitted, and its state; without one, an earlier call submitted it under the same key.

    `is_new`: this call made it. `moved_from` is the job that it has replaced under its key.

    ACCEPTED: it waits in the inbound queue. SCHEDULED: it waits in the table. DISPATCHED or PARKED: the direct route or
    the late path did that.
    """

    job: StoredJob
    state: State | None
    is_new: bool = True
    moved_from: JobId | None = None

    @property
    def is_repeat(self) -> bool:
        return self.state is None


def queue_name(text: str) -> str:
    """Return the name of a queue. Raises QueueNotFound for a text that cannot be one."""
    if not (isinstance(text, str) and _QUEUE_NAME.fullmatch(text)):
        raise QueueNotFound(f"no queue is named {shown(text)}: a name has 1 to 60 of a-z, 0-9 and -")
    return text


def checked_key(key: object) -> str:
    """Return a key. Raises InvalidJob unless it has 1 to 255 printable ASCII characters."""
    if isinstance(key, str) and 1 <= len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable():
        return key
    raise InvalidJob(f"key is {shown(key)}: it must have 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")


def check_kind(kind: object) -> None:
    """Raise InvalidJob unless it is None or a valid kind."""
    if kind is not None and not (isinstance(kind, str) and re.fullmatch(KIND, kind)):
        raise InvalidJob(f"kind is {shown(kind, most=200)}: it must have 1 to 64 of a-z, 0-9, ., _ and -")


def check_tenant(tenant: object) -> None:
    """Raise InvalidJob unless it is None or a valid tenant."""
    if tenant is not None and not (isinstance(tenant, str) and re.fullmatch(_TENANT, tenant)):
        must = f"it must have 1 to {MAX_TENANT_CHARACTERS} letters, digits and punctuation of ASCII, no spaces"
        raise InvalidJob(f"tenant is {shown(tenant, most=200)}: {must}")


def check_priority(priority: object) -> None:
    """Raise InvalidJob unless it is a priority that a queue can have."""
    if not isinstance(priority, int) or isinstance(priority, bool) or not 1 <= priority <= MAX_PRIORITY:
        raise InvalidJob(f"priority is {shown(priority)}: it must be a whole number from 1 to {MAX_PRIORITY}")


def origin_fields(origin: object) -> dict[str, Any]:
    """Return the fields of a StoredJob that `origin` says; none of None. Raises InvalidJob.

    >>> origin_fields("digest@2026-11-23T08:00:00.000Z!skip")["schedule"]
    'digest'
    """
    if origin is None:
        return {}
    match = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    try:
        if match is None:
            raise ValueError("it must be {schedule}@{scheduled_for}, and !skip behind it or nothing")
        return {"schedule": match[1], "scheduled_for": instant.parse(match[2]), "exclusive": match[3] is not None}
    except ValueError as error:
        raise InvalidJob(f"its schedule is {shown(origin, most=200)}: {error}") from None


def checked_schedule_name(name: object) -> str:
    """Return a schedule's name: 1 to 64 of a-z, A-Z, 0-9, -, _ and ., which may not come first.

    Raises InvalidSchedule for any other.
    """
    if isinstance(name, str) and re.fullmatch(SCHEDULE_NAME, name):
        return name
    raise InvalidSchedule(f"name is {shown(name)}: {_NAME_CHARACTERS}")


def _check_origin(schedule: object, scheduled_for: object, *, exclusive: bool) -> None:
    """Raise InvalidJob unless a job is of no schedule, or of one and for an instant."""
    if schedule is None and scheduled_for is None and not exclusive:
        return
    if not (isinstance(schedule, str) and re.fullmatch(SCHEDULE_NAME, schedule)):
        raise InvalidJob(f"schedule is {shown(schedule)}: {_NAME_CHARACTERS}")
    if not (isinstance(scheduled_for, datetime) and scheduled_for.tzinfo is not None):
        raise InvalidJob(f"scheduled_for is {shown(scheduled_for)}: it must be an instant with a time zone")
