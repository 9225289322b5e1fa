"""How many jobs a request carries where callers schedule one by one, at once, over a client that lingers.

The client is the real one, in real time; the API is not there, but as slow as it would be. The first job goes alone,
for nothing is under way; the others wait for each other.
"""

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from statistics import median
from threading import Barrier
from typing import Any
from uuid import uuid4

from bench.cost.plan import CALLERS, LINGER_SECONDS
from bench.cost.step import Step
from dueline.client.client import Client
from dueline.client.http_answer import HttpAnswer
from dueline.client.http_api import HttpApi
from dueline.clock import SystemClock

# Two rounds of DynamoDB at 10 ms, and as much for the function and the network.
_ANSWER_SECONDS = 0.040
_ROUNDS = 15
_JOB = {
    "id": "bench.0.t.1795255290123.00000000-0000-4000-8000-000000000001",
    "queue": "bench",
    "due": "2026-11-21T10:01:30.123Z",
    "route": "table",
    "state": "scheduled",
}


def lingering() -> Step:
    """Let callers schedule at once; return the step of their jobs: the requests by which these went, at the median."""
    api, together = _Api(), Barrier(CALLERS)
    client = Client(HttpApi(api, clock=SystemClock(), new_key=lambda: str(uuid4())), linger=LINGER_SECONDS)

    def caller(number: int) -> None:
        together.wait()
        client.schedule("bench", {"n": number}, delay=timedelta(days=1))

    taken = []
    with ThreadPoolExecutor(CALLERS) as threads:
        for _ in range(_ROUNDS):
            api.requests = 0
            list(threads.map(caller, range(CALLERS)))
            taken.append(api.requests)
    return Step(jobs=CALLERS, calls={"POST": int(median(taken))})


class _Api:
    """Answers that all is scheduled, after as long as the API takes."""

    def __init__(self) -> None:
        self.requests = 0

    def send(self, method: str, path: str, body: str | None, *, headers: Mapping[str, str]) -> HttpAnswer:
        self.requests += 1
        time.sleep(_ANSWER_SECONDS)
        jobs = json.loads(body or "{}").get("jobs")
        told: dict[str, Any] = _JOB if jobs is None else {"jobs": [_JOB] * len(jobs)}
        return HttpAnswer(asked=f"{method} {path}", status=201, headers={}, body=json.dumps(told).encode())

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        raise NotImplementedError("nothing here is large")
