"""The Lambda functions, imported and called in this process, with their queues and tables in memory."""

import importlib
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dueline.aws import clients
from dueline.config.environment import ApiSettings
from dueline.config.registry import Registry
from dueline.core.queue_settings import QueueSettings
from dueline.testing import MemoryQueue, MemoryTable
from tests.builders import NOBODY
from tests.fake_api_server import ApiRequest, Reply, json_reply

CONTEXT = SimpleNamespace(
    function_name="dueline-function",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:dueline-function:live",
    aws_request_id="r",
    get_remaining_time_in_millis=lambda: 20_000,
)
SETTINGS = ApiSettings(deployment="d", queue_urls="http://localhost/", payloads="p", direct_horizon=890, lookahead=240)


def import_function(monkeypatch: pytest.MonkeyPatch, name: str, settings: Any, registry: Registry) -> Any:
    """Import a function as on Lambda, with these settings and queues, and no network."""
    for variable, value in {**settings.to_env(), **NOBODY}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setitem(sys.modules, "dueline.functions.queue_registry", SimpleNamespace(REGISTRY=registry))
    declared = Registry(registry.queues, owners=registry.owners, measured=registry.measured)
    monkeypatch.setitem(sys.modules, "dueline.functions.declared_queues", SimpleNamespace(DECLARED=declared))
    # So that it is forgotten afterwards.
    monkeypatch.setitem(sys.modules, f"dueline.functions.{name}", None)
    del sys.modules[f"dueline.functions.{name}"]
    monkeypatch.setattr(clients.DEADLINE, "at", math.inf)
    return importlib.import_module(f"dueline.functions.{name}")


def sqs_record(id: str, body: str = "{}", *, receives: int = 1, **attributes: Any) -> dict[str, Any]:
    """Return a message as an event source mapping of SQS brings it.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    """
    return {
        "messageId": id,
        "receiptHandle": f"receipt of {id}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(receives),
            "ApproximateFirstReceiveTimestamp": "1795334400250",
            "SentTimestamp": "1545082649183",
        },
        "messageAttributes": {
            name: {"stringValue": value} if isinstance(value, str) else value for name, value in attributes.items()
        },
        "eventSource": "aws:sqs",
    }


@contextmanager
def import_api(monkeypatch: pytest.MonkeyPatch, *queues: QueueSettings) -> Iterator[Any]:
    """Import the HTTP API's function with these queues."""
    api = import_function(monkeypatch, "api", SETTINGS, Registry({queue.name: queue for queue in queues}))
    made: dict[str, MemoryQueue] = {}

    def queue(name: str) -> MemoryQueue:
        return made.setdefault(name, MemoryQueue(name=name, clock=api.DEPLOYMENT.clock))

    monkeypatch.setattr(api.DEPLOYMENT, "_table", cache(MemoryTable))
    monkeypatch.setattr(api.DEPLOYMENT, "queue", queue)
    yield api


def call_api(
    api: Any,
    method: str,
    path: str,
    body: object = None,
    *,
    caller: str = "",
    headers: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """Return the status and the body of the reply to a request; `api.last` is the whole reply.

    The body of a request is a text, or becomes one as JSON.
    """
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "1.2.3.4", "userAgent": "curl"}
    signed = {"authorizer": {"iam": {"userArn": caller}}} if caller else {}
    event = {
        "version": "2.0",
        "rawPath": path,
        "headers": headers or {},
        **({} if query is None else {"queryStringParameters": query}),
        "requestContext": {"http": http, "stage": "$default", **signed},
        "isBase64Encoded": False,
        **({} if text is None else {"body": text}),
    }
    if "/schedules" in path:
        api.with_schedules()
    api.last = answer = api.app.resolve(event, CONTEXT)
    return answer["statusCode"], json.loads(answer["body"])


def forward_to_api(api: Any, request: ApiRequest) -> Reply:
    """Return the function's reply to a request that the fake server received."""
    url = urlsplit(request.path)
    received = request.headers
    headers = {name: received[name] for name in ("if-match", "idempotency-key") if name in received}
    query, body = dict(parse_qsl(url.query)), request.body.decode() or None
    status, content = call_api(api, request.method, url.path, body=body, caller="ann", headers=headers, query=query)
    return json_reply(content, status)
