"""The HTTP API's function, read and called as on Lambda, with what it reaches in memory."""

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dueline.config.registry import Registry
from dueline.config.settings import ApiSettings
from dueline.memory import MemoryQueue, MemoryTable
from dueline.model.queue_settings import QueueSettings
from tests.builders import NOBODY
from tests.gate import Asked, Reply, told

CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 20_000)
SETTINGS = ApiSettings(deployment="d", queue_urls="http://localhost/", payloads="p", direct_horizon=890, lookahead=240)


@contextmanager
def imported(monkeypatch: pytest.MonkeyPatch, *queues: QueueSettings) -> Iterator[Any]:
    """Import the function with so many queues, its table and its SQS queues in memory."""
    for name, value in {**SETTINGS.to_env(), **NOBODY}.items():
        monkeypatch.setenv(name, value)
    registry = SimpleNamespace(REGISTRY=Registry({queue.name: queue for queue in queues}))
    monkeypatch.setitem(sys.modules, "functions.queue_registry", registry)
    monkeypatch.delitem(sys.modules, "functions.api", raising=False)
    api: Any = importlib.import_module("functions.api")
    made: dict[str, MemoryQueue] = {}

    def queue(name: str) -> MemoryQueue:
        return made.setdefault(name, MemoryQueue(name=name, clock=api.RESOURCES.clock))

    # A property, of the class.
    monkeypatch.setattr(type(api.RESOURCES), "table", MemoryTable(), raising=False)
    monkeypatch.setattr(api.RESOURCES, "queue", queue)
    yield api
    sys.modules.pop("functions.api", None)


def call(
    api: Any,
    method: str,
    path: str,
    *,
    body: str | None = None,
    caller: str = "",
    headers: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """Return the status and the body of an answer to a request that IAM has let pass; `api.last` is the answer."""
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


def over(api: Any, asked: Asked) -> Reply:
    """Return the answer of the function to a request as it came to a gate."""
    url = urlsplit(asked.path)
    given = {name.lower(): value for name, value in asked.headers.items()}
    headers = {name: given[name] for name in ("if-match", "if-none-match", "idempotency-key") if name in given}
    query, body = dict(parse_qsl(url.query)), asked.body.decode() or None
    status, content = call(api, asked.method, url.path, body=body, caller="ann", headers=headers, query=query)
    return told(content, status)
