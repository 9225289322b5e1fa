"""The deployed functions in this process, as Lambda runs them: their environment, their events, what they write."""

import importlib
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from dueline.config import metrics
from dueline.config.registry import Registry
from dueline.config.settings import ApiSettings, IngestSettings, TickSettings
from dueline.model.job import Job
from dueline.model.message import Message, type_of

ACCOUNT, REGION = "000000000000", "us-east-1"
REQUEST_ID = "8476a536-e9f4-11e8-9739-2dfe598c3fcd"
# Lambda tells every function which trace it is in, also where it is not traced.
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=557abcec3ee5a047;Sampled=0"
MEMORY_MB = 512


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
        sys.modules["functions.queue_registry"] = SimpleNamespace(REGISTRY=registry)  # type: ignore[assignment]
        sys.modules["functions.declared_queues"] = SimpleNamespace(DECLARED=registry)  # type: ignore[assignment]

    def invoke(self, name: str, event: Mapping[str, Any]) -> Invoked:
        handler = self._handlers.get(name) or self._load(name)
        context = self._context(name)
        self._out.seek(0)
        self._out.truncate()
        begun = time.process_time()
        answer = handler(event, context)
        cpu_seconds = time.process_time() - begun
        return Invoked(answer=answer, log=self._out.getvalue(), cpu_seconds=cpu_seconds)

    def _load(self, name: str) -> Any:
        os.environ["POWERTOOLS_SERVICE_NAME"] = name
        self._handlers[name] = importlib.import_module(f"functions.{name}").handler
        return self._handlers[name]

    def _context(self, name: str) -> Any:
        function = f"{self._deployment}-{name}"
        return SimpleNamespace(
            function_name=function,
            memory_limit_in_mb=MEMORY_MB,
            invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}",
            aws_request_id=REQUEST_ID,
            get_remaining_time_in_millis=lambda: 300_000,
        )


def of_inbound(jobs: Iterable[Job]) -> dict[str, Any]:
    """Return the event by which Lambda brings a batch of the inbound queue."""
    return {"Records": [_record(number, Message.of(job)) for number, job in enumerate(jobs)]}


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


def _record(number: int, message: Message) -> dict[str, Any]:
    attributes = {
        name: {"stringValue": value, "dataType": type_of(name, value)} for name, value in message.attributes.items()
    }
    return {
        "messageId": f"{number:08d}-0000-4000-8000-000000000000",
        "receiptHandle": "AQEB" + "w" * 180,
        "body": message.body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1795255290123"},
        "messageAttributes": attributes,
        "eventSource": "aws:sqs",
    }
