"""What jobs carry: payloads that make a row of so many bytes, unpacked, whichever protocol keeps it."""

import base64
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from bench.counted import row_bytes
from bench.dynein import SCHEDULED
from dueline.core import rows
from dueline.core.job import Partition, StoredJob
from tests.builders import a_job

QUEUE = "bench"
PARTITIONS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a job is: its row has `row_bytes` before its payload is packed.

    The payload is of random characters, which packing makes a quarter smaller at most.
    """

    name: str
    row_bytes: int

    def __str__(self) -> str:
        return self.name

    def payload(self, number: int) -> dict[str, Any]:
        """Return a payload, another one for each number."""
        payload: dict[str, Any] = {"n": f"{number:08d}", "text": ""}
        length = self.row_bytes - (largest_row_bytes("1") - 1 + len("status" + SCHEDULED)) - len(json_of(payload))
        text = base64.b64encode(random.Random(number).randbytes(length)).decode()
        return {**payload, "text": text[:length]}


USUAL = Size(name="1 KB", row_bytes=1024)
SIZES = (Size(name="200 B", row_bytes=200), USUAL, Size(name="4 KB", row_bytes=4096))


def table_job(payload: str, *, partition: Partition, due: datetime, number: int) -> StoredJob:
    return a_job(partition=partition, due=due, uid=str(UUID(int=number, version=4)), payload=payload)


def json_of(payload: dict[str, Any]) -> str:
    return json.dumps(payload, separators=(",", ":"))


def largest_row_bytes(payload: str) -> int:
    """Return the bytes that DynamoDB counts of the row of a job with a payload, at most."""
    return row_bytes(rows.job_row(table_job(payload, partition=_LAST, due=_DUE, number=1)))


def cancellation_bytes() -> int:
    """Return the bytes that DynamoDB counts of the row of a cancellation, at most."""
    return row_bytes(rows.cancellation_row(table_job("1", partition=_LAST, due=_DUE, number=1).id, at=_DUE))


# The fewer zeros a number ends with, the longer it is.
_DUE = datetime(2026, 11, 21, second=1, tzinfo=UTC)
_LAST = Partition(queue=QUEUE, number=PARTITIONS - 1)
