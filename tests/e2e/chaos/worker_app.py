"""The jobs of the scenario `workers`. Each writes down its effect.

`dueline worker tests.e2e.chaos.worker_app:worker`
"""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from dueline import Discard, ReceivedJob, Retry, Worker

EFFECTS = "CHAOS_EFFECTS"
OK, SLOW, FLAKY, RETRIED, DOOMED, DISCARDED = KINDS = ("ok", "slow", "flaky", "retried", "doomed", "discarded")
_SLOW_SECONDS = 0.5
worker = Worker("chaos", concurrency=16)


class Flaky(Exception):
    """Raised at the first attempt."""


class Doomed(Exception):
    """Raised at every attempt."""


def _end(job: ReceivedJob) -> None:
    """Return if a job is to have its effect; raise otherwise."""
    match job.payload["kind"]:
        case "flaky" if job.attempt == 1:
            raise Flaky("the first attempt")
        case "retried" if job.attempt == 1:
            raise Retry(1)
        case "doomed":
            raise Doomed("every attempt")
        case "discarded":
            raise Discard("it can never succeed")
    _write(job.id)


def _write(id: str) -> None:
    """Add a line, whole or not at all, if this process is killed."""
    file = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (json.dumps({"id": id, "at": time.time()}) + "\n").encode())
    finally:
        os.close(file)


def effects(path: Path) -> list[dict[str, Any]]:
    """Return the effects so far. A line that is being written may be read in part, and is left out."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


@worker.job("letters", once=True)
def process_slowly(job: ReceivedJob) -> None:
    time.sleep(_SLOW_SECONDS if job.payload["kind"] == SLOW else 0)
    _end(job)


@worker.job("hooks", once=True)
async def hooks(job: ReceivedJob) -> None:
    await asyncio.sleep(_SLOW_SECONDS if job.payload["kind"] == SLOW else 0)
    _end(job)
