"""Payloads in S3: those too large for a message or too expensive as a row, and those that callers upload themselves."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dueline.core import rows
from dueline.core.job import KEEP_DAYS, MAX_OFFLOADED_BYTES, MAX_PAYLOAD_BYTES, JobId, Route, StoredJob
from dueline.core.ports import Clock, Payloads, Pointer, StoredPayload
from dueline.errors import InvalidJob, PayloadTooLarge

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
class StartedUpload:
    """An upload that may be sent by a PUT to `url`, with exactly these headers, before it `expires`."""

    upload: Upload
    url: str
    headers: Mapping[str, str]
    expires: datetime


def begin(
    queue: str, *, bytes: int, sha256: str, payloads: Payloads, clock: Clock, new_uid: Callable[[], str]
) -> StartedUpload:
    """Let a payload of so many bytes and that SHA-256 (hex) be uploaded. Raises InvalidJob, PayloadTooLarge."""
    upload = Upload(uid=new_uid(), bytes=bytes, sha256=sha256)
    expires = clock.now() + URL_LASTS
    url, headers = payloads.upload_url(upload.key(queue), bytes=bytes, sha256=sha256, lasts=URL_LASTS)
    return StartedUpload(upload=upload, url=url, headers=headers, expires=expires)


def check_size(size: int) -> None:
    """Raise PayloadTooLarge when a payload has over 10 MiB, InvalidJob when it has none."""
    if size > MAX_OFFLOADED_BYTES:
        raise PayloadTooLarge(f"payload has {size} bytes: at most {MAX_OFFLOADED_BYTES} are allowed")
    if size < 1:
        raise InvalidJob(f"bytes is {size}: it must be from 1 to {MAX_OFFLOADED_BYTES}")


# A job is sent when it expires at the latest. Its message may fail at the end of its 14 days in the queue, and its dead
# letter stays for another 14; a redrive keeps the payload for as long again. And a day's grace.
AFTER_EXPIRY = timedelta(days=14 + 14 + 1)
MAX_ROW_PAYLOAD_BYTES = 8 * 1024
# Stands in a job until it is known where its payload is kept.
_NOT_PLACED = "null"

# A payload as it was given: JSON text in ASCII, or an upload.
Content = str | Upload


def content_of(upload: str | None, *, text: Callable[[], str]) -> Content:
    """Return the upload of that id, or else what `text` returns. Raises InvalidJob, or PayloadTooLarge over 10 MiB."""
    if upload is not None:
        return Upload.parse(upload)
    content = text()
    check_size(len(content))
    return content


def hash_of(content: Content) -> str:
    """Return the SHA-256 of a payload's text, in hex: the same whether it was given or uploaded."""
    return content.sha256 if isinstance(content, Upload) else hashlib.sha256(content.encode()).hexdigest()


def inline(content: Content) -> str:
    """Return a payload as a job may carry it, or a placeholder until it is placed."""
    return content if isinstance(content, str) and len(content) <= MAX_PAYLOAD_BYTES else _NOT_PLACED


def is_large(content: Content) -> bool:
    """Return whether a payload may have to be kept in S3."""
    return isinstance(content, Upload) or len(content) > MAX_ROW_PAYLOAD_BYTES


class Offload:
    """Decides for each job of one queue where its payload is kept, in the job or in S3, and puts it there."""

    def __init__(self, queue: str, *, payloads: Payloads, clock: Clock) -> None:
        self._queue = queue
        self._payloads = payloads
        self._clock = clock

    def check(self, content: Content) -> None:
        """Raise InvalidJob when there is no such upload, Throttled or Unavailable."""
        if isinstance(content, Upload):
            self._uploaded(content)

    def place(self, job: StoredJob, content: Content) -> StoredJob:
        """Return a job with its payload, or with the pointer to the S3 object that keeps it now.

        Safe to repeat. Raises InvalidJob when there is no such upload, Throttled or Unavailable.
        """
        if isinstance(content, Upload):
            pointer = self._payloads.copy(self._uploaded(content).pointer, to=self._key(job, content.sha256))
            if pointer is None:
                raise InvalidJob(f"upload is {str(content)!r}: it was just deleted, a day after it was uploaded")
            return replace(job, payload=pointer.text, offloaded_bytes=content.bytes)
        whole = replace(job, payload=inline(content))
        if len(content) <= MAX_PAYLOAD_BYTES and not _is_cheaper_elsewhere(whole):
            return whole
        pointer = self._payloads.put(self._key(job, hash_of(content)), content)
        return replace(job, payload=pointer.text, offloaded_bytes=len(content))

    def move(self, job: StoredJob, *, source: Pointer) -> StoredJob:
        """Return a job with the pointer to a copy of another job's payload, kept as long as this job needs it.

        One that is not kept among those of this queue stays where it is: a producer may write any pointer into a row.
        Raises InvalidJob when that payload is gone, Throttled or Unavailable.
        """
        if not source.is_of(self._queue):
            return job
        pointer = self._payloads.copy(source, to=self._key(job, source.content.rpartition(".")[2]))
        if pointer is None:
            raise InvalidJob(f"the payload of job {job.id} is gone: there is no object {source.key!r}")
        return replace(job, payload=pointer.text, offloaded_bytes=job.offloaded_bytes or 0)

    def _uploaded(self, upload: Upload) -> StoredPayload:
        stored = self._payloads.find(upload.key(self._queue))
        if stored is None:
            raise InvalidJob(f"upload is {str(upload)!r}: nothing was uploaded, or it is over a day ago")
        if stored.bytes != upload.bytes or stored.sha256 not in (None, upload.sha256):
            what = "the uploaded object does not have the size and SHA-256 in its id"
            raise InvalidJob(f"upload is {str(upload)!r}: {what}")
        return stored

    def _key(self, job: StoredJob, content: str) -> str:
        return object_key(job.id, content=content, expires=job.expires, now=self._clock.now())


def _is_cheaper_elsewhere(job: StoredJob) -> bool:
    if job.id.route is Route.DIRECT or job.size <= MAX_ROW_PAYLOAD_BYTES:
        return False
    return rows.payload_bytes(rows.job_row(job)) > MAX_ROW_PAYLOAD_BYTES


def object_key(id: JobId, *, content: str, expires: datetime, now: datetime) -> str:
    """Return the key under which a job's payload is kept: `{days}/{queue}/{uid}.{content}`.

    `content` is the SHA-256 of the payload, in hex: another payload under the same id does not replace it.

    The days, of four digits, are how long the bucket keeps it: the first power of two, 32 to 4096, that is as long as
    anyone may need it, until 29 days after the job expires.
    """
    needed = expires + AFTER_EXPIRY - now
    days = next((days for days in KEEP_DAYS if timedelta(days=days) >= needed), KEEP_DAYS[-1])
    return f"{days:04}/{id.queue}/{id.uid}.{content}"
