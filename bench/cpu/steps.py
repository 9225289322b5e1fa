"""Our steps, each as it is deployed: the Lambda handlers of ingest and tick, a direct client, and a worker."""

import importlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import ModuleType

from bench.cpu import material
from bench.cpu.loopback import Loopback
from bench.cpu.material import DEPLOYMENT, PARTITION, QUEUE
from bench.lambdas import context, declare, inbound_event
from dueline.client.client import Client
from dueline.client.new_job import NewJob
from dueline.config.registry import Registry
from dueline.model.job import Job
from dueline.worker.worker import Worker

# Carries out a step and returns how many jobs it was for, and the seconds that this process computed for them.
Step = Callable[[], tuple[int, float]]
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}
# Requests go to the endpoint that the environment names, whatever the URLs of queues say.
QUEUE_URLS = "https://sqs.us-east-1.amazonaws.com/123456789012/"
# So that all threads of a worker have begun.
_WARM_JOBS = 200


def as_deployed(loopback: Loopback) -> None:
    """Give this process the environment of the functions, whose AWS is the server that answers."""
    settings = material.tick_settings(QUEUE_URLS)
    powertools = {"POWERTOOLS_METRICS_NAMESPACE": "Dueline"}
    os.environ |= {**_CREDENTIALS, **settings.to_env(), **powertools, "AWS_ENDPOINT_URL": loopback.endpoint}
    declare(Registry({QUEUE.name: QUEUE}))


def function(name: str) -> ModuleType:
    return importlib.import_module(f"functions.{name}")


def timed(run: Callable[[], object], *, jobs: int) -> Step:
    """Return a step whose time is that of all threads, in the kernel too."""

    def step() -> tuple[int, float]:
        begun = time.process_time()
        run()
        return jobs, time.process_time() - begun

    return step


def submit(count: int) -> Step:
    """Schedule jobs a month ahead, by a direct client, which sends them in tens."""
    client = Client.connect(DEPLOYMENT, direct=True)
    payload = {"to": "ann@example.com", "text": "x" * 880}
    asked = [NewJob(payload=payload, delay=timedelta(days=30)) for _ in range(count)]
    return timed(lambda: client.schedule_many(QUEUE.name, asked), jobs=count)


def ingest(of_table: Sequence[Job]) -> Step:
    """Ingest one batch of the inbound queue."""
    handler, event = function("ingest").handler, inbound_event(of_table)
    return timed(lambda: handler(event, context("dueline-ingest")), jobs=len(of_table))


def tick(count: int) -> Step:
    """Tick a partition in which so many jobs are due."""
    handler, event = function("tick").handler, {"queue": PARTITION.queue, "partition": PARTITION.number}
    return timed(lambda: handler(event, context("dueline-tick")), jobs=count)


class Working:
    """A worker whose handlers do nothing, measured from one job's to another's: its start and its end do not count."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(self) -> tuple[int, float]:
        marks = _Marks(_WARM_JOBS, _WARM_JOBS + self._count)
        worker = Worker(DEPLOYMENT)
        worker.job(QUEUE.name)(lambda _: marks.count(then=worker.stop))
        worker.run(grace=0)
        return self._count, marks.seconds


class _Marks:
    """The time that this process has computed when so many jobs were handled."""

    def __init__(self, first: int, last: int) -> None:
        self._marks = {first: 0.0, last: 0.0}
        self._last = last
        self._seen = 0
        self._lock = threading.Lock()

    def count(self, *, then: Callable[[], None]) -> None:
        with self._lock:
            self._seen += 1
            if self._seen in self._marks:
                self._marks[self._seen] = time.process_time()
            if self._seen == self._last:
                then()

    @property
    def seconds(self) -> float:
        first, last = self._marks.values()
        return last - first
