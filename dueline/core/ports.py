"""Ports: what the protocol needs of the outside, as contracts.

One call is one request to AWS. It succeeds or fails as a whole, except where a result says otherwise.
Every call may raise Throttled or Unavailable: then it may or may not be done.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol, TypeVar

from dueline.core.job import Partition
from dueline.core.message import Message
from dueline.core.rows import COUNT, Key, PartitionState, Row
from dueline.errors import RETRYABLE, DuelineError, Unavailable

WRITE_ROWS = 25
READ_KEYS = 100

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRead:
    """The rows that were found, and the keys that DynamoDB left unread (UnprocessedKeys)."""

    rows: dict[Key, Row] = field(default_factory=dict)
    unread: frozenset[Key] = frozenset()

    def whole(self, what: str) -> dict[Key, Row]:
        """Return the rows. Raises Unavailable, which says `what` was read, where some were left unread."""
        if self.unread:
            raise Unavailable(f"{what} could not be read: try again")
        return self.rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """Rows in the order of their sort keys, and whether there may be more after the last."""

    rows: Sequence[Row]
    more: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchFailure:
    """A message of a batch that was refused: its index, why, and whether it always will be (`final`)."""

    index: int
    reason: str
    final: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Depth:
    """How many messages of a queue are waiting, in flight (received and hidden), and delayed, as SQS estimates."""

    waiting: int
    in_flight: int
    delayed: int

    def __add__(self, other: "Depth") -> "Depth":
        return Depth(
            waiting=self.waiting + other.waiting,
            in_flight=self.in_flight + other.in_flight,
            delayed=self.delayed + other.delayed,
        )


# As the Amazon SQS Extended Client Library writes it: its users read it by themselves, any other with one GetObject.
# Source: https://github.com/awslabs/amazon-sqs-java-extended-client-lib and payload-offloading-java-common-lib-for-aws
_POINTER_CLASS = "software.amazon.payloadoffloading.PayloadS3Pointer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pointer:
    """Where a payload is kept: the bucket and key of an S3 object."""

    bucket: str
    key: str

    @property
    def text(self) -> str:
        """The body of the message that points there."""
        return json.dumps([_POINTER_CLASS, {"s3BucketName": self.bucket, "s3Key": self.key}], separators=(",", ":"))

    @property
    def content(self) -> str:
        """What the key says of the payload, but not for how long it is kept: `{uid}.{SHA-256}`."""
        return self.key.rpartition("/")[2]

    def is_of(self, queue: str) -> bool:
        """Return whether its key is one under which payloads of that queue's jobs are kept, in whichever bucket."""
        return self.key.split("/")[1:-1] == [queue]

    @classmethod
    def parse(cls, text: str) -> "Pointer":
        """Return the pointer in a text. Raises ValueError when it has none."""
        try:
            name, place = json.loads(text)
            bucket, key = place["s3BucketName"], place["s3Key"]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ValueError("it is no pointer to a payload") from None
        if name != _POINTER_CLASS or not (isinstance(bucket, str) and isinstance(key, str)):
            raise ValueError("it is no pointer to a payload")
        return cls(bucket=bucket, key=key)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPayload:
    """A payload in S3: its size, and its SHA-256 (hex) where that is known."""

    pointer: Pointer
    bytes: int
    sha256: str | None


class MoveOutcome(Enum):
    """What became of a move: it was done, it was refused for good, or only because the key's row had changed."""

    DONE = "done"
    REFUSED = "refused"
    KEY_CHANGED = "key changed"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyChange:
    """What a move does to the row of a job's key: if that has the id `expected`, it gets the attributes of `row`.

    Where these have `calls`, only if the row has those of `before`: "" for none.
    """

    expected: str
    row: Row
    before: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleChange:
    """A new head of a schedule in place of the one of `generation` that was planned to `planned_to`.

    Where `generation` is 0 there is none. With it go the cancellations of jobs of the partition whose state is the row
    `state`, on condition that its fence is absent or below `fence_below`; without `state` no fence is checked. The
    number `count` of the queue's row grows by `counted`, up to the most a queue may have.
    """

    head: Row
    generation: int
    planned_to: str
    state: Key | None = None
    fence_below: str = ""
    cancellations: Sequence[Row] = ()
    counted: int = 0

    @property
    def counter(self) -> Key:
        return str(self.head["pk"]), COUNT


class Table(Protocol):
    """The table of jobs. A consistent read sees every write that was acknowledged before it began."""

    def write(self, rows: Sequence[Row], *, signed_before: datetime | None = None) -> list[Row]:
        """Put up to 25 rows of distinct keys; return those that were left unwritten.

        Raises Unavailable, and sends no request more, where that would be signed after `signed_before`.
        """

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> BatchRead:
        """Read up to 100 rows of distinct keys. A key in neither part of the answer has no row."""

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        """Read rows with `after` < sort key <= `until` in order, as many as a request returns, `limit` at most."""

    def outcomes(self, partition: Partition, *, after: str, until: str, limit: int) -> Page:
        """Read rows of outcomes as `page` reads those of jobs, the last first, perhaps a second old."""

    def add(self, row: Row, *, signed_before: datetime | None = None) -> Row:
        """Put a row unless its key has one; return the row that is there now. `signed_before` is as of `write`."""

    def claim(self, row: Row, *, now: datetime) -> Row:
        """Put a row unless its key has one that is not past its TTL at `now`; return the row that is there now."""

    def take_over(self, row: Row, *, there: Row) -> bool:
        """Put a key's row in place of one that has the id, `done` and `calls` of `there`; return whether it was put."""

    def record(self, row: Row) -> bool:
        """Put the outcome of a job over none, or that of an earlier attempt, or one of the same that is not final.

        Returns whether it was put. Attempts count from 1 once a dead letter is put back: so one that began later is
        put as well, over any but SUCCEEDED. Nothing that succeeded becomes SKIPPED.
        """

    def share(self, key: Key, *, id: str) -> bool:
        """Note on a claimed idempotency key that another call submits its job too; return whether it is that job's.

        From then on it cannot be released.
        """

    def release(self, key: Key, *, id: str, ttl: int) -> bool:
        """End a key's claim, and set its ttl, past which it is free again; return whether that was done.

        Only when the row is of that job, which was not submitted, and no other call shares the key.
        """

    def mark_done(self, key: Key, *, id: str) -> bool:
        """Note on an idempotency key that its job was submitted; return whether the row exists, for that job."""

    def change_calls(self, key: Key, *, before: str, after: str) -> bool:
        """Set the calls that a key's row remembers, if they are those of `before`; return whether they were."""

    def mark_exact(self, key: Key) -> None:
        """Note on a cancellation that it was promised. Does nothing when the row is gone."""

    def read_barrier(self, key: Key) -> Row | None:
        """Return a row that has a ttl, or None, by a conditional write that changes nothing.

        A read may not see yet what a move did; this waits until the move is over, or raises Throttled.
        """

    def move(
        self, cancellation: Row, job: Row, *, state: Key, fence_below: str, change: KeyChange | None = None
    ) -> MoveOutcome:
        """Put a job's cancellation and another job's row, and change a key's row, all or nothing.

        Only when the cancelled job has no cancellation yet, the fence of its partition, whose state is the row
        `state`, is absent or below `fence_below`, and the key's row has the id that is expected. Once REFUSED, it
        always is: fences only grow, and cancellations stay.
        """

    def change(self, change: ScheduleChange) -> bool:
        """Put a schedule's new head, its cancellations and its count, all or none; return whether they were put.

        A cancellation that is there already keeps what it holds, and is promised from then on. There are 95 at most.
        """

    def plan(self, key: Key, *, generation: int, planned_to: str, to: str) -> bool:
        """Set how far a schedule is planned, if its head has this generation and this `planned_to`; return whether."""

    def heads(self, queue: str, *, after: str, limit: int) -> Page:
        """Read heads of a queue's schedules with names > `after` in order, consistently, `limit` at most."""

    def acquire_lease(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        """Take the lease up to `lease` and raise the fence, in one conditional update.

        Only when the lease is free, over at `now` or already `owner`'s, and the stored fence is absent or
        not higher than `fence`. Returns the state after the call: the lease was taken when it names `owner`
        and `lease`. Raises Unavailable, and never does it, where the request would be signed before `now`, because the
        clock was set back: AWS checks the signature alone, and `fence` was made of `now`.
        """

    def checkpoint(
        self, partition: Partition, *, owner: str, cursor: str, fence: str, lease: str, now: str = ""
    ) -> bool:
        """Move the cursor, renew the lease up to `lease` (or release it: "") and raise the fence.

        Only when the lease is still `owner`'s and neither cursor nor fence falls; returns whether it was. `now` is as
        of `acquire_lease`.
        """

    def reserve(self, key: Key, *, now: int, amount: int, ttl: int) -> int:
        """Advance a row's number `until` to `amount` beyond the larger of what it is and `now`; return what it is then.

        Atomic: what one call advances it by is no other's. Creates the row; its ttl is `ttl` from then on, which must
        lie beyond that instant. A call whose answer was lost may have advanced it, once a try.
        """


class Queue(Protocol):
    """An SQS queue, to send to and to measure."""

    def send(self, messages: Sequence[Message]) -> list[BatchFailure]:
        """Send up to 10 messages and 1 MiB; return those that were not sent. Raises QueueNotFound."""

    def depth(self) -> Depth:
        """Return how many messages there are. Raises QueueNotFound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueMessage:
    """A message that was received: the receipt of this receive, how often it was received, and when it was sent."""

    message: Message
    message_id: str
    receipt: str
    receives: int
    sent: datetime


class QueueReader(Protocol):
    """An SQS queue, to receive from. A receiver has the claim on a message until that becomes visible again."""

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[QueueMessage]:
        """Receive up to `most` messages, 1 to 10, and wait up to `wait` seconds, 0 to 20, for the first.

        Each is hidden for `hidden` seconds, by default the queue's visibility timeout. Raises QueueNotFound.
        """

    def delete(self, receipts: Sequence[str]) -> list[BatchFailure]:
        """Delete up to 10 messages; return those that were not. A `final` refusal says that the claim is lost."""

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[BatchFailure]:
        """Hide up to 10 messages for so many seconds from now, 0 to 12 hours; return those that were not hidden.

        0 puts a message back at once. A `final` refusal says that the claim is lost.
        """


class Payloads(Protocol):
    """Large payloads in S3, each under a key that also says how long it is kept."""

    def put(self, key: str, text: str) -> Pointer:
        """Store a text under a key, replacing what was there; return where it is."""

    def copy(self, source: Pointer, *, to: str) -> Pointer | None:
        """Copy what is at `source` to the key `to`; return where the copy is, or None if there is no source.

        A source in someone else's bucket is not copied: then return `source`.
        """

    def renew(self, pointer: Pointer) -> None:
        """Keep what is at a pointer from now on for as long as its key says. What is in another bucket is left alone.

        Raises InvalidJob when it is gone or may not be copied: S3 does not always say which.
        """

    def read(self, pointer: Pointer) -> str:
        """Return the text at a pointer, in whatever bucket.

        Raises InvalidJob when it is gone or may not be read: S3 does not always say which.
        """

    def find(self, key: str) -> StoredPayload | None:
        """Return what is stored under a key, or None."""

    def upload_url(self, key: str, *, bytes: int, sha256: str, lasts: timedelta) -> tuple[str, Mapping[str, str]]:
        """Return a presigned URL to which a payload may be PUT, and the headers to send with it.

        S3 accepts exactly so many bytes with that SHA-256 (hex). Makes no request.
        """


class Clock(Protocol):
    """Time as one process knows it."""

    def now(self) -> datetime:
        """Return the wall clock's time, aware."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class ParallelMap(Protocol):
    """Runs a call for each item, perhaps several at once; results come in the items' order."""

    def __call__(self, call: Callable[[A], B], items: Iterable[A], /) -> Iterable[B]: ...


def cut(items: Sequence[A], size: int) -> Iterator[Sequence[A]]:
    """Cut items, in order, into as many as one request takes."""
    return (items[start : start + size] for start in range(0, len(items), size))


class RowReader(Protocol):
    """A table, or another that reads its rows."""

    def read(self, keys: Sequence[Key], /) -> BatchRead: ...


def read_all(
    keys: Iterable[Key],
    *,
    table: RowReader,
    spread: ParallelMap = map,
    note: Callable[[DuelineError], None] | None = None,
) -> BatchRead:
    """Read any number of distinct keys, consistently, 100 a request.

    Raises Throttled or Unavailable; with `note`, that gets them instead, and the keys are unread.
    """

    def read(some: Sequence[Key]) -> BatchRead:
        try:
            return table.read(some)
        except RETRYABLE as fault:
            if note is None:
                raise
            note(fault)
            return BatchRead(unread=frozenset(some))

    readings = list(spread(read, list(cut(sorted(keys), READ_KEYS))))
    existing = {key: row for reading in readings for key, row in reading.rows.items()}
    return BatchRead(rows=existing, unread=frozenset(key for reading in readings for key in reading.unread))
