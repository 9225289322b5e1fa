"""Offload: keep a payload in S3 that is too large for a message, or would cost more as a row.

A row over 8 KiB costs more than one PUT to S3: $5.00 a million PUTs are 8 write units of $0.625 a million.
Sources: https://aws.amazon.com/dynamodb/pricing/on-demand/ and https://aws.amazon.com/s3/pricing/ (us-east-1)
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace

from dueline.errors import InvalidJob
from dueline.model import rows
from dueline.model.job import MAX_PAYLOAD_BYTES, Job, Route
from dueline.model.pointer import Pointer, object_key
from dueline.ports import Clock, Found, Payloads
from dueline.protocol.uploads import Upload, check_size

MAX_ROW_PAYLOAD_BYTES = 8 * 1024
# Stands in a job until it is known where its payload is kept.
_NOT_PLACED = "null"

# A payload as it was given: JSON text in ASCII, or an upload.
Content = str | Upload


def content_of(upload: str | None, *, text: Callable[[], str]) -> Content:
    """Return the upload of that id, or else what `text` returns.

    Raises InvalidJob, PayloadTooLarge when it has over 10 MiB.
    """
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
    """Tell whether a payload may have to be kept in S3."""
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
            self._found(content)

    def place(self, job: Job, content: Content) -> Job:
        """Return a job with its payload, or with the pointer to the S3 object that keeps it now.

        Safe to repeat. Raises InvalidJob when there is no such upload, Throttled or Unavailable.
        """
        if isinstance(content, Upload):
            return self._pointing(job, self._adopt(content, job), content.bytes)
        whole = replace(job, payload=inline(content))
        if len(content) <= MAX_PAYLOAD_BYTES and not _is_cheaper_elsewhere(whole):
            return whole
        key = self._key(job, hash_of(content))
        return self._pointing(job, self._payloads.put(key, content), len(content))

    def move(self, job: Job, *, source: Pointer) -> Job:
        """Return a job with the pointer to a copy of another job's payload, kept as long as this job needs it.

        One that is not kept among those of this queue stays where it is: a producer may write any pointer into a row.
        Raises InvalidJob when that payload is gone, Throttled or Unavailable.
        """
        if not source.is_of(self._queue):
            return job
        pointer = self._payloads.copy(source, to=self._key(job, source.content.rpartition(".")[2]))
        if pointer is None:
            raise InvalidJob(f"the payload of job {job.id} is gone: there is no object {source.key!r}")
        return self._pointing(job, pointer, job.offloaded_bytes or 0)

    def _adopt(self, upload: Upload, job: Job) -> Pointer:
        """Keep an upload as the payload of a job."""
        pointer = self._payloads.copy(self._found(upload).pointer, to=self._key(job, upload.sha256))
        if pointer is None:
            raise InvalidJob(f"upload is {str(upload)!r}: it was just deleted, a day after it was uploaded")
        return pointer

    def _found(self, upload: Upload) -> Found:
        found = self._payloads.find(upload.key(self._queue))
        if found is None:
            raise InvalidJob(f"upload is {str(upload)!r}: nothing was uploaded, or it is over a day ago")
        if not _is_whole(found, upload):
            raise InvalidJob(
                f"upload is {str(upload)!r}: the uploaded object does not have the size and SHA-256 in its id"
            )
        return found

    def _key(self, job: Job, content: str) -> str:
        return object_key(job.id, content=content, expires=job.expires, now=self._clock.now())

    @staticmethod
    def _pointing(job: Job, pointer: Pointer, size: int) -> Job:
        return replace(job, payload=pointer.text, offloaded_bytes=size)


def _is_cheaper_elsewhere(job: Job) -> bool:
    if job.id.route is Route.DIRECT or job.size <= MAX_ROW_PAYLOAD_BYTES:
        return False
    return rows.payload_bytes(rows.job_row(job)) > MAX_ROW_PAYLOAD_BYTES


def _is_whole(found: Found, upload: Upload) -> bool:
    return found.bytes == upload.bytes and found.sha256 in (None, upload.sha256)
