"""The HTTP API's Lambda function, imported and called in this process, with its queues and table in memory."""

import importlib
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 20_000)
SETTINGS = ApiSettings(deployment="d", queue_urls="http://localhost/", payloads="p", direct_horizon=890, lookahead=240)


@contextmanager
def import_api(monkeypatch: pytest.MonkeyPatch, *queues: QueueSettings) -> Iterator[Any]:
    """Import the function with these queues."""
    for name, value in {**SETTINGS.to_env(), **NOBODY}.items():
        monkeypatch.setenv(name, value)
    registry = SimpleNamespace(REGISTRY=Registry({queue.name: queue for queue in queues}))
    monkeypatch.setitem(sys.modules, "functions.queue_registry", registry)
    monkeypatch.delitem(sys.modules, "functions.api", raising=False)
    monkeypatch.setattr(clients.DEADLINE, "at", math.inf)
    api: Any = importlib.import_module("functions.api")
    made: dict[str, MemoryQueue] = {}

    def queue(name: str) -> MemoryQueue:
        return made.setdefault(name, MemoryQueue(name=name, clock=api.DEPLOYMENT.clock))

    # A property, of the class.
    monkeypatch.setattr(type(api.DEPLOYMENT), "table", MemoryTable(), raising=False)
    monkeypatch.setattr(api.DEPLOYMENT, "queue", queue)
    yield api
    sys.modules.pop("functions.api", None)


def call_api(
    api: Any,
    method: str,
    path: str,
    *,
    body: str | None = None,
    caller: str = "",
    headers: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """Return the status and the body of the reply to a request; `api.last` is the whole reply."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "1.2.3.4", "userAgent": "curl"}
    signed = {"authorizer": {"iam": {"userArn": caller}}} if caller else {}
    event = {
        "version": "2.0",
        "rawPath": path,
        "headers": headers or {},
        **({} if query is None else {"queryStringParameters": query}),
        "requestContext": {"http": http, "stage": "$default", **signed},
        "isBase64Encoded": False,
        **({} if body is None else {"body": body}),
    }
    api.app.lambda_context = CONTEXT
    if "/schedules" in path:
        api.with_schedules()
    api.last = answer = api.app.resolve(event, CONTEXT)
    return answer["statusCode"], json.loads(answer["body"])


def forward_to_api(api: Any, request: ApiRequest) -> Reply:
    """Return the function's reply to a request that the fake server received."""
    url = urlsplit(request.path)
    received = request.headers
    headers = {name: received[name] for name in ("if-match", "if-none-match", "idempotency-key") if name in received}
    query, body = dict(parse_qsl(url.query)), request.body.decode() or None
    status, content = call_api(api, request.method, url.path, body=body, caller="ann", headers=headers, query=query)
    return json_reply(content, status)
