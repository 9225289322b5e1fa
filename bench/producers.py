"""How fast many jobs are scheduled, and how long one takes, against the local AWS, beside its own rate."""

import os
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from statistics import median
from unittest.mock import patch

import yaml

from bench.harness import Figures, Run, Target, aws_environment
from dueline import Client, NewJob
from dueline.aws.aws_deployment import AwsDeployment
from dueline.core import rows
from dueline.core.ports import WRITE_ROWS
from dueline.core.retry import LANES
from local.emulator import Emulator
from local.running import Running, running

QUEUE = "emails"
LATER = timedelta(days=1)
ONE_BY_THE_TABLE, ONE_BY_SQS = "writes the table, and reads a fence", "sends a message"
_PAYLOAD = {"to": "ann@example.com", "text": "x" * 880}


def measure(run: Run) -> Figures:
    jobs, singly = (1000, 30) if run.quick else (5000, 150)
    queues, emulator = run.scratch / "queues.yaml", Emulator(log=run.scratch / "ministack.log")
    queues.write_text(yaml.safe_dump({"name": "bench", "queues": {QUEUE: {"partitions": 4}}}))

    def step(text: str) -> AbstractContextManager[None]:
        run.progress(text)
        return nullcontext()

    environment = aws_environment(emulator.endpoint)
    with patch.dict(os.environ, environment), running(queues, emulator=emulator, step=step) as deployment:
        return {
            "jobs": jobs,
            "singly": _singly(deployment, singly),
            "a_second": _rates(deployment, jobs, run),
        }


def targets(figures: Figures) -> list[Target]:
    return []


def _rates(deployment: Running, jobs: int, run: Run) -> dict[str, float]:
    """Return the jobs a second of each way; the bare requests go by as many threads as a client has lanes."""
    name = deployment.deployment.name
    ways: dict[str, Callable[[int], None]] = {
        "HTTP": partial(_schedule_many, Client.connect(name, url=deployment.endpoints.api)),
        "direct client": partial(_schedule_many, Client.connect(name, direct=True)),
        "bare BatchWriteItem": partial(_put, name, WRITE_ROWS),
        "bare PutItem": partial(_put, name, 1),
    }
    rates = {}
    for way, schedule in ways.items():
        run.progress(way)
        schedule(jobs // 10)
        begun = time.monotonic()
        schedule(jobs)
        rates[way] = jobs / (time.monotonic() - begun)
    return rates


def _schedule_many(client: Client, count: int) -> None:
    results = client.schedule_many(QUEUE, (NewJob(payload=_PAYLOAD, delay=LATER) for _ in range(count)))
    if errors := [each for each in results if isinstance(each, Exception)]:
        raise RuntimeError(f"{len(errors)} jobs were not scheduled, the first because of: {errors[0]}")


def _put(deployment: str, at_once: int, count: int) -> None:
    """Put rows as large as those of the jobs, so many a request, as fast as the emulator takes them."""
    table = AwsDeployment(deployment, queue_urls="", longest=timedelta(seconds=10)).table

    def put(some: int) -> None:
        pk = f"raw#{uuid.uuid4().hex[:1]}"
        new = [{"pk": pk, "sk": f"{uuid.uuid4()}{rows.JOB}", "payload": _PAYLOAD["text"]} for _ in range(some)]
        if at_once == 1:
            table.add(new[0])
        elif table.write(new):
            raise RuntimeError("the emulator throttled")

    with ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(put, [at_once] * (count // at_once)))


def _singly(deployment: Running, count: int) -> dict[str, float]:
    """Return the median seconds of one job by a direct client, in turns: one by the table, and one due soon, by SQS."""
    client = Client.connect(deployment.deployment.name, direct=True)
    soon = timedelta(seconds=deployment.deployment.direct_horizon - 1)
    seconds: dict[str, list[float]] = {ONE_BY_THE_TABLE: [], ONE_BY_SQS: []}
    for _ in range(count):
        for way, delay in ((ONE_BY_THE_TABLE, LATER), (ONE_BY_SQS, soon)):
            begun = time.perf_counter()
            client.schedule(QUEUE, _PAYLOAD, delay=delay)
            seconds[way].append(time.perf_counter() - begun)
    return {way: median(each) for way, each in seconds.items()}
