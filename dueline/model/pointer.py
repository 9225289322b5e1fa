"""Pointers: what stands for a payload that is kept in S3, and under which key it is kept there.

A pointer is written as the Amazon SQS Extended Client Library writes it, so that consumers which use that library
read it by themselves, and any other with one GetObject.
Source: https://github.com/awslabs/amazon-sqs-java-extended-client-lib and payload-offloading-java-common-lib-for-aws
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.model.job import KEEP_DAYS, JobId

_CLASS = "software.amazon.payloadoffloading.PayloadS3Pointer"
# A job is sent when it expires at the latest; SQS keeps its message for 14 days at most. And a day's grace.
_AFTER_EXPIRY = timedelta(days=14 + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pointer:
    """Where a payload is kept: the bucket and key of an S3 object."""

    bucket: str
    key: str

    @property
    def text(self) -> str:
        """The body of the message that points there."""
        return json.dumps([_CLASS, {"s3BucketName": self.bucket, "s3Key": self.key}], separators=(",", ":"))

    @property
    def content(self) -> str:
        """What the key says of the payload, but not for how long it is kept: `{uid}.{SHA-256}`."""
        return self.key.rpartition("/")[2]

    def is_of(self, queue: str) -> bool:
        """Tell whether its key is one under which payloads of that queue's jobs are kept, in whichever bucket."""
        return self.key.split("/")[1:-1] == [queue]

    @classmethod
    def parse(cls, text: str) -> "Pointer":
        """Return the pointer in a text. Raises ValueError when it has none."""
        try:
            name, place = json.loads(text)
            bucket, key = place["s3BucketName"], place["s3Key"]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ValueError("it is no pointer to a payload") from None
        if name != _CLASS or not (isinstance(bucket, str) and isinstance(key, str)):
            raise ValueError("it is no pointer to a payload")
        return cls(bucket=bucket, key=key)


def object_key(id: JobId, *, content: str, expires: datetime, now: datetime) -> str:
    """Return the key under which a job's payload is kept: `{days}/{queue}/{uid}.{content}`.

    `content` is the SHA-256 of the payload, in hex: another payload under the same id does not replace it.

    The days, of four digits, are how long the bucket keeps it: the first power of two, 16 to 4096, that is as long as
    anyone may need it, until 14 days and one more after the job expires.
    """
    needed = expires + _AFTER_EXPIRY - now
    days = next((days for days in KEEP_DAYS if timedelta(days=days) >= needed), KEEP_DAYS[-1])
    return f"{days:04}/{id.queue}/{id.uid}.{content}"
