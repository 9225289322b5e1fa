"""A bucket in memory."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from dueline.errors import InvalidJob
from dueline.model.pointer import Pointer
from dueline.ports import Found


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

    def read(self, pointer: Pointer) -> str:
        if pointer.bucket != self.bucket or pointer.key not in self.kept:
            raise InvalidJob(f"reading payload {pointer.key}: there is none")
        return self.kept[pointer.key].decode()

    def find(self, key: str) -> Found | None:
        if key not in self.kept:
            return None
        kept = self.kept[key]
        pointer = Pointer(bucket=self.bucket, key=key)
        return Found(pointer=pointer, bytes=len(kept), sha256=hashlib.sha256(kept).hexdigest())

    def upload_url(self, key: str, *, bytes: int, sha256: str, lasts: timedelta) -> tuple[str, Mapping[str, str]]:
        """Return what names the upload: nobody listens there."""
        return f"memory://{self.bucket}/{key}", {"content-length": str(bytes), "x-amz-checksum-sha256": sha256}
