"""Uploads: payloads that are too large for a request, which the caller puts into S3 before scheduling the job."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.errors import InvalidJob, PayloadTooLarge
from dueline.model.job import MAX_OFFLOADED_BYTES
from dueline.ports import Clock, Payloads

URL_LASTS = timedelta(minutes=15)
METHOD = "PUT"
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ID = re.compile(r"(?P<uid>[0-9a-f-]{36})\.(?P<bytes>[1-9]\d{0,7})\.(?P<sha256>[0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """An upload of a payload. Its id has its size and its SHA-256, which S3 checks."""

    uid: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        check_size(self.bytes)
        if not _SHA256.fullmatch(self.sha256):
            raise InvalidJob(f"sha256 is {self.sha256[:100]!r}: it must have 64 hexadecimal digits, in lower case")

    def __str__(self) -> str:
        return f"{self.uid}.{self.bytes}.{self.sha256}"

    @classmethod
    def parse(cls, text: object) -> "Upload":
        """Return the upload with that id. Raises InvalidJob when it is malformed."""
        match = _ID.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidJob(f"upload is {repr(text)[:200]}: it must be the id of an upload, as the API returned it")
        return cls(uid=match["uid"], bytes=int(match["bytes"]), sha256=match["sha256"])

    def key(self, queue: str) -> str:
        """Return the S3 key under which it is kept until its job is submitted, for at least one day."""
        return f"uploads/{queue}/{self}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """An upload that may be sent by a PUT to `url`, with exactly these headers, before it `expires`."""

    upload: Upload
    url: str
    headers: Mapping[str, str]
    expires: datetime


def begin(
    queue: str, *, bytes: int, sha256: str, payloads: Payloads, clock: Clock, new_uid: Callable[[], str]
) -> Begun:
    """Let a payload of so many bytes and that SHA-256 (hex) be uploaded, and nothing else.

    Raises InvalidJob, PayloadTooLarge when it has over 10 MiB.
    """
    upload = Upload(uid=new_uid(), bytes=bytes, sha256=sha256)
    expires = clock.now() + URL_LASTS
    url, headers = payloads.upload_url(upload.key(queue), bytes=bytes, sha256=sha256, lasts=URL_LASTS)
    return Begun(upload=upload, url=url, headers=headers, expires=expires)


def check_size(size: int) -> None:
    """Raise PayloadTooLarge when a payload has over 10 MiB, InvalidJob when it has none."""
    if size > MAX_OFFLOADED_BYTES:
        raise PayloadTooLarge(f"payload has {size} bytes: at most {MAX_OFFLOADED_BYTES} are allowed")
    if size < 1:
        raise InvalidJob(f"bytes is {size}: it must be from 1 to {MAX_OFFLOADED_BYTES}")
