"""The deployed functions in this process, as Lambda runs them: their environment, their events, what they write."""

import importlib
import io
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.lambdas import context, declare
from dueline.config import metrics
from dueline.config.registry import Registry
from dueline.config.settings import ApiSettings, IngestSettings, TickSettings
from local.emulator import ACCOUNT

# Lambda tells every function which trace it is in, also where it is not traced.
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=557abcec3ee5a047;Sampled=0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Invoked:
    """What an invocation answered and wrote, and the CPU time that it took."""

    answer: Any
    log: str
    cpu_seconds: float


class Lambdas:
    """The functions, read when they are first invoked. What they write goes to `out`, which must be `sys.stdout`."""

    def __init__(self, registry: Registry, *, deployment: str, queue_urls: str, out: io.StringIO) -> None:
        self._deployment = deployment
        self._out = out
        self._handlers: dict[str, Any] = {}
        common: dict[str, Any] = {"deployment": deployment, "queue_urls": queue_urls}
        os.environ |= IngestSettings(**common).to_env()
        os.environ |= TickSettings(**common, tick_period=60, lookahead=240, lease=30).to_env()
        os.environ |= ApiSettings(**common, payloads="payloads", direct_horizon=890, lookahead=240).to_env()
        os.environ |= {"POWERTOOLS_METRICS_NAMESPACE": metrics.NAMESPACE, "_X_AMZN_TRACE_ID": TRACE}
        declare(registry)

    def invoke(self, name: str, event: Mapping[str, Any]) -> Invoked:
        handler = self._handlers.get(name) or self._load(name)
        given = context(f"{self._deployment}-{name}")
        self._out.seek(0)
        self._out.truncate()
        begun = time.process_time()
        answer = handler(event, given)
        cpu_seconds = time.process_time() - begun
        return Invoked(answer=answer, log=self._out.getvalue(), cpu_seconds=cpu_seconds)

    @contextmanager
    def throttled(self, queue: str) -> Iterator[None]:
        """Let the API know that the table takes no jobs of a queue, while the context lasts."""
        resources = importlib.import_module("functions.api").RESOURCES
        resources.breaker(queue).trip()
        try:
            yield
        finally:
            resources.breaker.cache_clear()

    def _load(self, name: str) -> Any:
        os.environ["POWERTOOLS_SERVICE_NAME"] = name
        self._handlers[name] = importlib.import_module(f"functions.{name}").handler
        return self._handlers[name]


def of_schedule(queue: str, jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the event by which API Gateway asks to schedule one job, or several."""
    path = f"/queues/{queue}/jobs"
    caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/service/i-0123456789abcdef0"
    return {
        "version": "2.0",
        "rawPath": path,
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "http": {"method": "POST", "path": path, "sourceIp": "10.0.0.1", "userAgent": "dueline"},
            "stage": "$default",
            "authorizer": {"iam": {"userArn": caller}},
        },
        "isBase64Encoded": False,
        "body": json.dumps(jobs[0] if len(jobs) == 1 else {"jobs": list(jobs)}),
    }
