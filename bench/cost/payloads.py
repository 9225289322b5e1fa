"""What jobs carry: payloads that make a row of so many bytes, unpacked, whichever protocol keeps it."""

import base64
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from bench.dynein import SCHEDULED
from dueline.model import instant, rows
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.units import row_bytes

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
        source, tag = random.Random(number), f"{number:08d}"
        told: dict[str, Any] = {"n": tag, **(_order(source) if self.is_json else {}), "text": ""}
        wanted = self.row_bytes - _least_row() - len(json_of(told))
        if wanted < 0:
            raise ValueError(f"{self.name}: its least payload is {-wanted} B too large")
        words = " ".join(source.choices(_LETTERS.split(), k=wanted)) if self.is_json else _letters(source, wanted)
        return {**told, "text": words[:wanted]}


def _order(source: random.Random) -> dict[str, Any]:
    """Return what a service would send to have a customer told of an order: numbers, addresses and times are random."""
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
        "items": [_item(source) for _ in range(4)],
        "template": "order-reminder-v3",
        "channel": "email",
    }


def _item(source: random.Random) -> dict[str, Any]:
    return {
        "sku": f"SKU-{source.randrange(10**6):06d}",
        "name": " ".join(source.choices(_LETTERS.split(), k=4)),
        "quantity": source.randrange(1, 5),
        "price": source.randrange(10**4) / 100,
    }


def _letters(source: random.Random, count: int) -> str:
    return base64.b64encode(source.randbytes(count)).decode()


USUAL = Size(name="1 KB", row_bytes=1024)
SIZES = (Size(name="200 B", row_bytes=200), USUAL, Size(name="4 KB", row_bytes=4096))
JSON = Size(name="1 KB of JSON", row_bytes=1024, is_json=True)


def a_job(payload: str, *, partition: Partition, due: datetime, number: int) -> Job:
    uid = str(UUID(int=number, version=4))
    id = JobId(partition=partition, route=Route.TABLE, due=due, uid=uid)
    return Job(id=id, payload=payload, expires=due + RETENTION)


def json_of(payload: dict[str, Any]) -> str:
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
