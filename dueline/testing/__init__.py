"""Tests without AWS: a deployment in memory (`Local`), jobs and events to call handlers with, and the ports in memory.

The ports keep the contracts of ports.py: one suite of tests checks them and the ports on AWS alike.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING

from dueline.core.clock import TimeBounds
from dueline.core.ports import Pointer, StoredPayload
from dueline.errors import InvalidJob
from dueline.testing.memory_queue import Delivery, MemoryQueue
from dueline.testing.memory_table import MemoryTable

if TYPE_CHECKING:
    from dueline.testing.local import Local, received_job, sqs_event

__all__ = [
    "Delivery",
    "Local",
    "MemoryLocks",
    "MemoryPayloads",
    "MemoryQueue",
    "MemoryTable",
    "VirtualClock",
    "received_job",
    "sqs_event",
]
_IN_LOCAL = ("Local", "received_job", "sqs_event")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The simulation needs the ports alone, and the modules of `Local` need the ports.
        if name not in _IN_LOCAL:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("dueline.testing.local"), name)


class VirtualClock:
    """A clock that stands still until `sleep` or `move_to` moves it, and shows what AWS's own does."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def moment(self) -> TimeBounds:
        return TimeBounds(earliest=self.now(), latest=self.now())

    def sleep(self, seconds: float) -> None:
        self._elapsed += seconds

    def move_to(self, at: datetime) -> None:
        """Stand at an instant, unless that is past."""
        self._elapsed = max(self._elapsed, (at - self._start).total_seconds())


class MemoryLocks:
    """The locks of one queue's schedules: which job has each, and until when. Threads may share it."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, datetime]] = {}
        self._changing = Lock()

    def take(self, schedule: str, *, job: str, now: datetime, until: datetime) -> bool:
        with self._changing:
            holder, end = self.held.get(schedule, (job, now))
            may = holder == job or end <= now
            if may:
                self.held[schedule] = job, until
        return may

    def free(self, schedule: str, *, job: str) -> None:
        with self._changing:
            if self.held.get(schedule, ("", None))[0] == job:
                del self.held[schedule]


@dataclass(kw_only=True, slots=True)
class MemoryPayloads:
    """A bucket as a dictionary of what is kept under which key."""

    bucket: str = "payloads"
    kept: dict[str, bytes] = field(default_factory=dict)
    renewed: set[str] = field(default_factory=set)

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

    def renew(self, pointer: Pointer) -> None:
        if pointer.bucket != self.bucket:
            return
        if pointer.key not in self.kept:
            raise InvalidJob("its payload is gone")
        self.renewed.add(pointer.key)

    def read(self, pointer: Pointer) -> str:
        if pointer.bucket != self.bucket or pointer.key not in self.kept:
            raise InvalidJob(f"reading payload {pointer.key}: there is none")
        return self.kept[pointer.key].decode()

    def find(self, key: str) -> StoredPayload | None:
        if key not in self.kept:
            return None
        kept = self.kept[key]
        pointer = Pointer(bucket=self.bucket, key=key)
        return StoredPayload(pointer=pointer, bytes=len(kept), sha256=hashlib.sha256(kept).hexdigest())

    def upload_url(self, key: str, *, bytes: int, sha256: str, lasts: timedelta) -> tuple[str, Mapping[str, str]]:
        """Return what names the upload: nobody listens there."""
        return f"memory://{self.bucket}/{key}", {"content-length": str(bytes), "x-amz-checksum-sha256": sha256}
