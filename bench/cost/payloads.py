"""What jobs carry: payloads that make a row of so many bytes, unpacked, whichever protocol keeps it."""

import base64
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from bench.dynein import SCHEDULED
from dueline.model import rows
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.units import row_bytes

QUEUE = "bench"
PARTITIONS = 400
RETENTION = timedelta(days=7)
_LETTERS = "and of the to in is for on with your order at by from has been we it will as"


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a job is: its row has `row_bytes` before its payload is packed, or its payload `payload_bytes`.

    The payload is of prose, or of random letters, which packing makes a quarter smaller at most.
    """

    name: str
    row_bytes: int = 0
    payload_bytes: int = 0
    is_prose: bool = False

    def __str__(self) -> str:
        return self.name

    def payload(self, number: int) -> dict[str, str]:
        """Return a payload, another one for each number."""
        wanted = self.payload_bytes or self.row_bytes - _least_row()
        least = len(json.dumps({"n": "", "text": ""}, separators=(",", ":")))
        tag = f"{number:08d}"
        return {"n": tag, "text": self._text(number)[: wanted - least - len(tag)]}

    def _text(self, number: int) -> str:
        source = random.Random(number)
        if self.is_prose:
            return " ".join(source.choices(_LETTERS.split(), k=self.payload_bytes))
        return base64.b64encode(source.randbytes(max(self.row_bytes, self.payload_bytes))).decode()


USUAL = Size(name="1 KB", row_bytes=1024)
SIZES = (Size(name="200 B", row_bytes=200), USUAL, Size(name="4 KB", row_bytes=4096))
PACKED = (
    Size(name="payload of 1 KB, prose", payload_bytes=1024, is_prose=True),
    Size(name="payload of 1 KB, random", payload_bytes=1024),
)


def a_job(payload: str, *, partition: Partition, due: datetime, number: int) -> Job:
    uid = str(UUID(int=number, version=4))
    id = JobId(partition=partition, route=Route.TABLE, due=due, uid=uid)
    return Job(id=id, payload=payload, expires=due + RETENTION)


def json_of(payload: dict[str, str]) -> str:
    return json.dumps(payload, separators=(",", ":"))


def largest_row_bytes(payload: str) -> int:
    """Return the bytes that DynamoDB counts of the row of a job with a payload, at most."""
    # The fewer zeros a number ends with, the longer it is.
    due = datetime(2026, 11, 21, second=1, tzinfo=UTC)
    job = a_job(payload, partition=Partition(queue=QUEUE, number=PARTITIONS - 1), due=due, number=1)
    return row_bytes(rows.job_row(job))


def _least_row() -> int:
    """Return the bytes of a row but for its payload, at most; Dynein's has a status as well."""
    return largest_row_bytes("1") - 1 + len("status" + SCHEDULED)
