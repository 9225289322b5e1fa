"""Jobs by the table that several tests follow, scheduled before the first of these: so all of them wait at once."""

import base64
import hashlib
import os
import random
import ssl
from collections.abc import Mapping
from typing import Any

import httpx

from tests.acceptance.inbox import compact
from tests.waiting import HANG_SECONDS

Job = dict[str, Any]


def scattered(size: int) -> str:
    """Return a text of so many characters that no compression makes much smaller."""
    return base64.b64encode(random.Random(size).randbytes(size * 3 // 4)).decode()


PAYLOADS: dict[str, Any] = {"20 KB": scattered(20_000), "300 KB": scattered(300_000)}
UPLOADED = scattered(6_000_000)
PRIORITIES = (1, 2)
TRACE = {"traceparent": "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01", "tracestate": "vendor=7"}


def trust() -> ssl.SSLContext | bool:
    """Return what httpx verifies AWS, or a local AWS, with."""
    authority = os.environ.get("AWS_CA_BUNDLE")
    return ssl.create_default_context(cafile=authority) if authority else True


def schedule(http: httpx.Client, queue: str, *, headers: Mapping[str, str] | None = None, **body: Any) -> Job:
    answer = http.post(
        f"/queues/{queue}/jobs", json={"payload": 1, **body} if "upload" not in body else body, headers=headers
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


def upload(http: httpx.Client, queue: str, body: bytes, **claimed: Any) -> tuple[Job, httpx.Response]:
    """Request an upload, and send it as the answer says, without any credentials."""
    request = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()} | claimed
    answer = http.post(f"/queues/{queue}/uploads", json=request)
    assert answer.status_code == 201, answer.text
    presigned = answer.json()
    headers = {
        name: str(len(body)) if name.lower() == "content-length" else each
        for name, each in presigned["headers"].items()
    }
    with httpx.Client(verify=trust(), timeout=HANG_SECONDS) as stranger:
        return presigned, stranger.put(presigned["url"], content=body, headers=headers)


def schedule_early(http: httpx.Client, *, delay: float) -> dict[str, Job]:
    """Schedule the jobs; return each by its name."""
    presigned, sent = upload(http, "plain", compact(UPLOADED).encode())
    assert sent.is_success, sent.text
    bodies = {name: ("plain", {"payload": payload}) for name, payload in PAYLOADS.items()}
    bodies |= {f"priority {each}": ("levels", {"priority": each}) for each in PRIORITIES}
    bodies |= {"uploaded": ("plain", {"upload": presigned["upload"]})}
    bodies |= {"traced": ("plain", {"headers": TRACE})}
    return {name: schedule(http, queue, **body, delay=delay) for name, (queue, body) in bodies.items()}
