"""What jobs carry: payloads that make a row of so many bytes, unpacked, whichever protocol keeps it."""

import base64
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from bench.dynein import SCHEDULED
from dueline.core import instant, rows
from dueline.core.job import Job, JobId, Partition, Route
from dueline.core.rows import row_bytes

QUEUE = "bench"
PARTITIONS = 400
RETENTION = timedelta(days=7)
_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
_LETTERS = "and of the to in is for on with your order at by from has been we it will as"


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a job is: its row has `row_bytes` before its payload is packed.

    The payload is of random letters, which packing makes a quarter smaller at most, or else JSON as services send it.
    """

    name: str
    row_bytes: int
    is_json: bool = False

    def __str__(self) -> str:
        return self.name

    def payload(self, number: int) -> dict[str, Any]:
        """Return a payload, another one for each number."""
        source = random.Random(number)
        payload: dict[str, Any] = {"n": f"{number:08d}", **(_order(source) if self.is_json else {}), "text": ""}
        wanted = self.row_bytes - (largest_row_bytes("1") - 1 + len("status" + SCHEDULED)) - len(json_of(payload))
        if wanted < 0:
            raise ValueError(f"{self.name}: its least payload is {-wanted} B too large")
        letters = base64.b64encode(source.randbytes(0 if self.is_json else wanted)).decode()
        words = " ".join(source.choices(_LETTERS.split(), k=wanted))
        return {**payload, "text": (words if self.is_json else letters)[:wanted]}


def _order(source: random.Random) -> dict[str, Any]:
    """Return what a service might send of an order: numbers, addresses and times are random."""
    customer, order = source.randrange(10**8), str(UUID(int=source.getrandbits(128), version=4))
    return {
        "type": "order.reminder",
        "order": {"id": order, "url": f"https://shop.example.com/orders/{order}", "currency": "EUR"},
        "customer": {
            "id": customer,
            "email": f"customer.{customer}@example.com",
            "locale": source.choice(["de", "en"]),
        },
        "created_at": instant.text(_NOON + timedelta(minutes=source.randrange(10**5))),
        "items": [
            {
                "sku": f"SKU-{source.randrange(10**6):06d}",
                "name": " ".join(source.choices(_LETTERS.split(), k=4)),
                "quantity": source.randrange(1, 5),
                "price": source.randrange(10**4) / 100,
            }
            for _ in range(4)
        ],
        "template": "order-reminder-v3",
        "channel": "email",
    }


USUAL = Size(name="1 KB", row_bytes=1024)
SIZES = (Size(name="200 B", row_bytes=200), USUAL, Size(name="4 KB", row_bytes=4096))
JSON = Size(name="1 KB of JSON", row_bytes=1024, is_json=True)


def table_job(payload: str, *, partition: Partition, due: datetime, number: int) -> Job:
    id = JobId(partition=partition, route=Route.TABLE, due=due, uid=str(UUID(int=number, version=4)))
    return Job(id=id, payload=payload, expires=due + RETENTION)


def json_of(payload: dict[str, Any]) -> str:
    return json.dumps(payload, separators=(",", ":"))


def largest_row_bytes(payload: str) -> int:
    """Return the bytes that DynamoDB counts of the row of a job with a payload, at most."""
    # The fewer zeros a number ends with, the longer it is.
    due = datetime(2026, 11, 21, second=1, tzinfo=UTC)
    partition = Partition(queue=QUEUE, number=PARTITIONS - 1)
    return row_bytes(rows.job_row(table_job(payload, partition=partition, due=due, number=1)))
