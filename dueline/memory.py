"""The ports in memory, for tests, simulations and programs that want no AWS.

They keep the contracts of ports.py, which one suite checks here and on AWS's protocol alike.
"""

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline import rows
from dueline.errors import QueueNotFound
from dueline.job import Partition
from dueline.message import BATCH_BYTES, BATCH_MESSAGES, Message
from dueline.pointer import Pointer
from dueline.ports import READ_KEYS, WRITE_ROWS, Clock, Depth, Found, Page, Reading, Refusal
from dueline.routing import MAX_DELAY_SECONDS
from dueline.rows import Key, PartitionState, Row


class MemoryTable:
    """The table of jobs as a dictionary. `page_rows` is the most that one page holds. Every read is consistent."""

    def __init__(self, *, page_rows: int = 1000) -> None:
        self._page_rows = page_rows
        self._rows: dict[str, dict[str, Row]] = defaultdict(dict)

    def write(self, written: Sequence[Row]) -> list[Row]:
        _at_most(WRITE_ROWS, written, "rows in one write")
        _distinct([rows.key(row) for row in written])
        for row in written:
            self._put(row)
        return []

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> Reading:
        _at_most(READ_KEYS, keys, "keys in one read")
        _distinct(keys)
        return Reading(rows={(pk, sk): self._rows[pk][sk] for pk, sk in keys if sk in self._rows[pk]})

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        items = self._rows[str(partition)]
        order = sorted(items)
        keys = order[bisect_right(order, after) : bisect_right(order, until)]
        chosen = keys[: self._page_rows if limit is None else min(self._page_rows, limit)]
        return Page(rows=[items[key] for key in chosen], more=len(keys) > len(chosen))

    def add(self, row: Row) -> Row:
        pk, sk = rows.key(row)
        if sk not in self._rows[pk]:
            self._put(row)
        return self._rows[pk][sk]

    def claim(self, row: Row, *, now: datetime) -> Row:
        pk, sk = rows.key(row)
        if not rows.is_live(self._rows[pk].get(sk), now=now):
            self._put(row)
        return self._rows[pk][sk]

    def mark_done(self, key: Key, *, id: str) -> None:
        pk, sk = key
        if self._rows[pk].get(sk, {}).get("id") == id:
            self._mark(key, "done")

    def mark_exact(self, key: Key) -> None:
        self._mark(key, "exact")

    def move(self, cancellation: Row, job: Row, *, state: Key, fence_below: str) -> bool:
        _distinct([rows.key(cancellation), rows.key(job), state])
        (pk, sk), (state_pk, state_sk) = rows.key(cancellation), state
        fence = rows.read_state(self._rows[state_pk].get(state_sk)).fence
        takes_effect = fence < fence_below and sk not in self._rows[pk]
        if takes_effect:
            self._put(cancellation)
            self._put(job)
        return takes_effect

    def take(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        state = self._state(partition)
        if state.fence <= fence and (state.owner in ("", owner) or state.lease <= now):
            state = PartitionState(fence=fence, cursor=state.cursor, owner=owner, lease=lease)
            self._put_state(partition, state)
        return state

    def checkpoint(self, partition: Partition, *, owner: str, cursor: str, fence: str, lease: str) -> bool:
        state = self._state(partition)
        kept = state.owner == owner and state.cursor <= cursor and state.fence <= fence
        if kept:
            holder = owner if lease else ""
            self._put_state(partition, PartitionState(fence=fence, cursor=cursor, owner=holder, lease=lease))
        return kept

    def expired(self, *, now: datetime) -> list[Key]:
        """Return the keys of the rows that are past their TTL."""
        held = (row for items in self._rows.values() for row in items.values())
        return [rows.key(row) for row in held if "ttl" in row and not rows.is_live(row, now=now)]

    def collect(self, keys: Iterable[Key]) -> None:
        """Delete rows, as DynamoDB does in its own time with those past their TTL."""
        for pk, sk in keys:
            self._rows[pk].pop(sk, None)

    def _mark(self, key: Key, name: str) -> None:
        pk, sk = key
        if sk in self._rows[pk]:
            self._put({**self._rows[pk][sk], name: True})

    def _state(self, partition: Partition) -> PartitionState:
        return rows.read_state(self._rows[str(partition)].get(rows.STATE))

    def _put_state(self, partition: Partition, state: PartitionState) -> None:
        pk, sk = rows.state_key(partition)
        held = {"owner": state.owner, "lease": state.lease} if state.owner else {}
        self._put({"pk": pk, "sk": sk, "fence": state.fence, "cursor": state.cursor, **held})

    def _put(self, row: Row) -> None:
        pk, sk = rows.key(row)
        self._rows[pk][sk] = row


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """A message in a queue, and when it becomes visible."""

    message: Message
    visible: datetime


@dataclass(kw_only=True, slots=True)
class MemoryQueue:
    """An SQS queue as a list of what was sent to it. Set `gone` to delete it."""

    name: str
    clock: Clock
    gone: bool = False
    deliveries: list[Delivery] = field(default_factory=list)

    def send(self, messages: Sequence[Message]) -> list[Refusal]:
        if self.gone:
            raise QueueNotFound(f"queue {self.name} does not exist")
        _at_most(BATCH_MESSAGES, messages, "messages in one batch")
        refusals = {index: why for index, message in enumerate(messages) if (why := _why_unsendable(message))}
        now = self.clock.now()
        self.deliveries += [
            Delivery(message=message, visible=now + timedelta(seconds=message.delay))
            for index, message in enumerate(messages)
            if index not in refusals
        ]
        return [Refusal(index=index, reason=why, final=True) for index, why in refusals.items()]

    def depth(self) -> Depth:
        """Return how many messages there are; none is in flight, because nothing receives."""
        if self.gone:
            raise QueueNotFound(f"queue {self.name} does not exist")
        now = self.clock.now()
        delayed = sum(delivery.visible > now for delivery in self.deliveries)
        return Depth(waiting=len(self.deliveries) - delayed, in_flight=0, delayed=delayed)


@dataclass(kw_only=True, slots=True)
class MemoryPayloads:
    """A bucket as a dictionary of what is kept under which key."""

    bucket: str = "payloads"
    kept: dict[str, bytes] = field(default_factory=dict)

    def put(self, key: str, text: str) -> Pointer:
        self.kept[key] = text.encode()
        return Pointer(bucket=self.bucket, key=key)

    def copy(self, source: Pointer, *, to: str) -> Pointer | None:
        if source.bucket != self.bucket:
            return source
        if source.key not in self.kept:
            return None
        self.kept[to] = self.kept[source.key]
        return Pointer(bucket=self.bucket, key=to)

    def find(self, key: str) -> Found | None:
        if key not in self.kept:
            return None
        kept = self.kept[key]
        pointer = Pointer(bucket=self.bucket, key=key)
        return Found(pointer=pointer, bytes=len(kept), sha256=hashlib.sha256(kept).hexdigest())

    def upload_url(self, key: str, *, bytes: int, sha256: str, lasts: timedelta) -> tuple[str, Mapping[str, str]]:
        """Return what names the upload: nobody listens there."""
        return f"memory://{self.bucket}/{key}", {"content-length": str(bytes), "x-amz-checksum-sha256": sha256}


class VirtualClock:
    """A clock that stands still until it is told to move, or someone sleeps."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self._elapsed += seconds


def _why_unsendable(message: Message) -> str | None:
    """Return SQS's reason to refuse a message, or nothing."""
    if not 0 <= message.delay <= MAX_DELAY_SECONDS:
        return f"InvalidParameterValue: DelaySeconds is {message.delay}: it must be from 0 to {MAX_DELAY_SECONDS}"
    if message.sent_bytes > BATCH_BYTES:
        return f"InvalidParameterValue: the message has {message.sent_bytes} bytes: at most {BATCH_BYTES} are allowed"
    return None


def _at_most(limit: int, items: Sequence[object], what: str) -> None:
    if len(items) > limit:
        raise ValueError(f"{len(items)} {what}: AWS takes {limit}")


def _distinct(keys: Sequence[Key]) -> None:
    if len(set(keys)) < len(keys):
        raise ValueError("a key is named twice: AWS refuses the whole call")
