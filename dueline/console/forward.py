"""Forwarding: a request goes on to the deployment's HTTP API, signed with the caller's credentials."""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote, unquote_to_bytes

from dueline.client.http_answer import HttpAnswer
from dueline.console.web import Answer, Request

_CONDITIONS = {"idempotency-key", "if-match", "if-none-match"}
_REQUEST_HEADERS = {"content-type", "accept", *_CONDITIONS, "traceparent", "tracestate"}
_ANSWER_HEADERS = {"content-type", "etag", "retry-after"}


class Way(Protocol):
    """The way to an API, or what stands in for it."""

    def send(self, method: str, path: str, body: bytes | None, *, headers: Mapping[str, str]) -> HttpAnswer:
        """Send a request, once. Raises Forbidden without credentials, and Unavailable when no answer comes."""


def forward(request: Request, path: str, *, way: Way) -> Answer:
    """Send a request on to a path, with its query string, body and what it says of them; return the answer.

    Raises Forbidden or Unavailable.
    """
    headers = {name: value for name, value in request.headers.items() if name in _REQUEST_HEADERS}
    method = "GET" if request.is_read else request.method
    answer = way.send(method, path + _query_of(request), request.body() or None, headers=headers)
    return Answer(
        status=answer.status,
        content=answer.body,
        headers={name: answer.headers[name] for name in _ANSWER_HEADERS & set(answer.headers)},
    )


def _query_of(request: Request) -> str:
    """Return the query string, encoded as strictly as AWS's signature wants it: it says what it said."""
    if not request.query:
        return ""
    fields = (field.partition("=") for field in request.query.split("&"))
    return "?" + "&".join(f"{_strict(name)}{equals}{_strict(value)}" for name, equals, value in fields)


def _strict(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")
