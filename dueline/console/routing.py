"""Routes of the console: a path must match exactly as it was sent, and each request runs in a thread.

Errors are problem details (RFC 9457), which the page shows.
"""

import json
import re
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from http.client import responses
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dueline.core.job import QUEUE_NAME, SCHEDULE_NAME
from dueline.core.text import shown
from dueline.errors import DuelineError

PROBLEM_TYPE = "application/problem+json"
READS = ("GET", "HEAD")
# The limit of Lambda, and so of the API.
MOST_BYTES = 6 * 1024 * 1024
# So much is read and dropped: a client that is still sending would not see the answer.
_MOST_DROPPED_BYTES = 8 * MOST_BYTES

# Returns a response, or what one has as JSON.
Handler = Callable[[Request, bytes], Response | Mapping[str, Any]]

# What a route's parameters match, by their names; ids are those of jobs and of runs.
_PARAMETERS = {"queue": QUEUE_NAME, "schedule": SCHEDULE_NAME, "id": r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"}
for name, pattern in _PARAMETERS.items():
    register_url_convertor(name, type(name, (StringConvertor,), {"regex": pattern})())


class Refused(Exception):
    """A request that the console refuses: the status, the reason for people, and a code for machines."""

    def __init__(
        self, status: int, detail: str, *, code: str = "refused", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers = status, code, headers or {}


def to_problem(error: Exception) -> dict[str, Any]:
    """Return the problem details of an error. Of an unexpected one they show only the type: its text may be secret."""
    if not isinstance(error, Refused | DuelineError):
        detail = f"the console failed: {type(error).__name__}"
        error = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, detail, code="console_failed")
    title = responses.get(error.status, f"Status {error.status}")
    return {"type": "about:blank", "title": title, "status": error.status, "code": error.code, "detail": str(error)}


def error_response(request: Request, error: Exception) -> Response:
    """Return the response that reports an error. An unexpected one is logged."""
    if not isinstance(error, Refused | DuelineError):
        _log(error, request)
    details = to_problem(error)
    headers = error.headers if isinstance(error, Refused) else None
    return JSONResponse(details, details["status"], headers=headers, media_type=PROBLEM_TYPE)


def refuse_if_read_only(request: Request) -> None:
    """Raise Refused where the console was started to change nothing."""
    if request.app.state.read_only:
        raise Refused(HTTPStatus.FORBIDDEN, "the console was started with --read-only", code="read_only")


def make_route(path: str, methods: Collection[str], handler: Handler, *, changes: bool = True) -> Route:
    """Return a route such as `/queues/{queue}`, whose `handler` gets each request and its body, in a thread.

    A read-only console refuses requests other than reads, unless `changes` is False.
    """

    async def endpoint(request: Request) -> Response:
        try:
            body = await _read_body(request)
            if changes and request.method not in READS:
                refuse_if_read_only(request)
            answer = await run_in_threadpool(handler, request, body)
        except ClientDisconnect:
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        except Exception as error:
            return error_response(request, error)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    return Route(re.sub(r"\{(\w+)\}", r"{\1:\1}", path), endpoint, methods=methods)


async def _read_body(request: Request) -> bytes:
    """Return a request's body. Raises Refused where it is too large or its length is not declared."""
    if "transfer-encoding" in request.headers:
        detail = "the body must come with a content-length, not in chunks"
        raise Refused(HTTPStatus.LENGTH_REQUIRED, detail, headers={"connection": "close"})
    body, length = bytearray(), 0
    async for part in request.stream():
        length += len(part)
        if length <= MOST_BYTES:
            body += part
        elif length > _MOST_DROPPED_BYTES:
            break
    if length > MOST_BYTES:
        detail = f"the body has {request.headers['content-length']} bytes: it may have up to {MOST_BYTES}"
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, code="payload_too_large")
    return bytes(body)


def header(request: Request, name: str) -> str | None:
    """Return a header. A repeated one has all its values, and so none that anything expects."""
    return ", ".join(request.headers.getlist(name)) if name in request.headers else None


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body, an empty one where there is no body. Raises Refused."""
    value = parse_json(body or b"{}")
    if not isinstance(value, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "the body must be a JSON object", code="no_json")
    return value


def parse_json(content: bytes) -> Any:
    """Return what JSON holds, None where it is invalid."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def unmatched(request: Request, error: Exception) -> Response:
    """Return the response to a request that no route matches: 404, or 405 for another method."""
    path, allow = shown(request.scope["path"]), getattr(error, "headers", None)
    if not allow:
        detail = f"there is nothing at {path}: paths must match exactly"
        return error_response(request, Refused(HTTPStatus.NOT_FOUND, detail, code="route_not_found"))
    allowed = ", ".join(sorted({*allow["Allow"].split(", ")} - {"HEAD"}))
    detail = f"{path} does not allow {request.method}: it allows {allowed}"
    refused = Refused(HTTPStatus.METHOD_NOT_ALLOWED, detail, code="method_not_allowed", headers={"allow": allowed})
    return error_response(request, refused)


def _log(error: Exception, request: Request) -> None:
    """Write where an unexpected error was raised, and nothing of the request's query and body."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    path = request.scope["path"].encode("unicode_escape").decode()
    sys.stderr.write(f"dueline: {request.method} {path}: {type(error).__name__} at {last.filename}:{last.lineno}\n")
