"""Jobs by the table that several tests follow, scheduled before the first of these: so all of them wait at once."""

import hashlib
import json
import random
import string
from collections.abc import Mapping
from typing import Any

import httpx

from tests.e2e.inbox import HANG_SECONDS

SOON_BY_THE_TABLE = 25

Job = dict[str, Any]


def scattered(size: int) -> str:
    """Return a text of so many characters that no compression makes much smaller."""
    return "".join(random.Random(size).choices(string.ascii_letters + string.digits, k=size))


def compact(payload: object) -> str:
    return json.dumps(payload, separators=(",", ":"))


SAME_AGAIN = ["the same again"] * 1200  # 20 KB
PAYLOADS: dict[str, Any] = {"20 KB": scattered(20_000), "300 KB": scattered(300_000), "compressible": SAME_AGAIN}
UPLOADED = scattered(6_000_000)
PRIORITIES = (1, 2)
TRACE = {"traceparent": "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01", "tracestate": "vendor=7"}


def schedule(http: httpx.Client, queue: str, *, headers: Mapping[str, str] | None = None, **body: Any) -> Job:
    answer = http.post(f"/queues/{queue}/jobs", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    job: Job = answer.json()
    return job


def upload(http: httpx.Client, queue: str, body: bytes, *, verify: Any, **claimed: Any) -> tuple[Job, httpx.Response]:
    """Ask for an upload, and send it as the answer says, without any credentials."""
    asked = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()} | claimed
    answer = http.post(f"/queues/{queue}/uploads", json=asked)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    with httpx.Client(verify=verify, timeout=HANG_SECONDS) as stranger:
        return told, stranger.put(told["url"], content=body, headers=told["headers"])


def schedule_early(http: httpx.Client, *, verify: Any) -> dict[str, Job]:
    """Schedule the jobs; return each by its name."""
    begun, sent = upload(http, "archive", compact(UPLOADED).encode(), verify=verify)
    assert sent.is_success, sent.text
    bodies = {name: ("archive", {"payload": payload}) for name, payload in PAYLOADS.items()}
    bodies |= {f"priority {each}": ("ranked", {"payload": 1, "priority": each}) for each in PRIORITIES}
    bodies |= {"uploaded": ("archive", {"upload": begun["upload"]})}
    bodies |= {"traced": ("archive", {"payload": 1, "headers": TRACE})}
    return {name: schedule(http, queue, **body, delay=SOON_BY_THE_TABLE) for name, (queue, body) in bodies.items()}
