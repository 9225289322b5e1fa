"""`/api/…`: requests forwarded to the deployment's HTTP API, signed with the caller's credentials. No others are."""

from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Protocol
from urllib.parse import quote, unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dueline.client.http import HttpResponse, error_of
from dueline.config.routes import ROUTES
from dueline.console.routing import PROBLEM_TYPE, Refused, header, make_route, parse_json

PREFIX = "/api"
_CONDITIONS = ("idempotency-key", "if-match")
_REQUEST_HEADERS = ("content-type", "accept", *_CONDITIONS, "traceparent", "tracestate")
_RESPONSE_HEADERS = ("content-type", "etag", "retry-after")


class Upstream(Protocol):
    """The deployment's HTTP API, to which requests are forwarded."""

    def send(self, method: str, path: str, body: bytes | None, *, headers: Mapping[str, str]) -> HttpResponse:
        """Send a request, once. Raises Forbidden without credentials, and Unavailable when no answer comes."""


def api_routes(upstream: Upstream) -> Iterator[Route]:
    """Return the routes to an API."""
    for path, route in ROUTES.items():
        yield make_route(PREFIX + path, [*route.methods], partial(_call_api, upstream=upstream))


def _call_api(request: Request, body: bytes, *, upstream: Upstream) -> Response:
    path = request.scope["path"].removeprefix(PREFIX)
    response = forward(request, path, body, upstream=upstream)
    is_problem = response.headers.get("content-type", "").startswith(PROBLEM_TYPE)
    if response.status_code < HTTPStatus.BAD_REQUEST or is_problem:
        return response
    # A refusal of API Gateway's own: the request did not reach the API's function.
    call = f"{request.method} {path}"
    error = error_of(parse_json(bytes(response.body)), status=response.status_code, request=call)
    headers = {"retry-after": seconds} if (seconds := response.headers.get("retry-after")) else None
    raise Refused(response.status_code, str(error), code=error.code, headers=headers)


def forward(request: Request, path: str, body: bytes, *, upstream: Upstream) -> Response:
    """Send a request on to a path, with its query string, body and some headers; return the response.

    Raises Forbidden or Unavailable.
    """
    headers = {name: value for name in _REQUEST_HEADERS if (value := header(request, name)) is not None}
    answer = upstream.send(request.method, path + _query_of(request), body or None, headers=headers)
    kept = {name: value for name, value in answer.headers.items() if name in _RESPONSE_HEADERS}
    return Response(answer.body, answer.status, headers=kept)


def _query_of(request: Request) -> str:
    """Return the query string, unchanged in meaning, encoded as strictly as AWS's signature needs it."""
    query = request.scope["query_string"].decode()
    if not query:
        return ""
    fields = (field.partition("=") for field in query.split("&"))
    return "?" + "&".join(f"{_encode(name)}{equals}{_encode(value)}" for name, equals, value in fields)


def _encode(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")
