"""Errors as HTTP answers: problem details (RFC 9457)."""

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, NotRequired

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from pydantic import Field, JsonValue

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.core.text import shown
from dueline.errors import ERRORS, RETRYABLE, DuelineError, NotYet

_STATUS = {kind.error: HTTPStatus(kind.status) for kind in ERRORS if kind.over_http}
_NO_ROUTE = "route_not_found"
_CODES: list[JsonValue] = [*sorted({_NO_ROUTE, *(error.code for error in _STATUS)})]
_RETRY_AFTER_SECONDS = "1"


class Problem(TypedDict):
    """What went wrong (RFC 9457)."""

    type: str
    """Always `about:blank`: the status says it."""
    title: str
    """The status in words."""
    status: int
    """The status of the answer, or of one of many."""
    code: Annotated[str, Field(json_schema_extra={"enum": _CODES})]
    """For machines: it distinguishes errors of one status, and never changes."""
    detail: str
    """For people: what is wrong, the value got, and what is allowed."""
    id: NotRequired[str]
    """The job that may be scheduled all the same, or that took the other's place."""


def problem(error: DuelineError) -> Problem:
    """Return the problem details of an error, with the job's id where it may be scheduled all the same.

    What AWS said when it failed is for our log, not for callers.
    """
    status = _STATUS[type(error)]
    is_fault_of_aws = isinstance(error, RETRYABLE) and not isinstance(error, NotYet)
    detail = f"{status.phrase}: try again" if is_fault_of_aws else str(error)
    problem = _problem(status, error.code, detail)
    return problem if error.job_id is None else {**problem, "id": error.job_id}


def refused_event(error: DuelineError) -> dict[str, Any]:
    """Return the answer to an event that is no request, as the function returns it."""
    refused = response(problem(error))
    headers = {"Content-Type": refused.content_type}
    return {"statusCode": refused.status_code, "headers": headers, "body": refused.body, "isBase64Encoded": False}


def no_route_of_lines(app: APIGatewayHttpResolver, call: Callable[..., Any]) -> Any:
    """Let a request through to its route unless its path has a line feed: a route matches without one at the end."""
    path = app.current_event.path
    return response(route_problem(path)) if "\n" in path else call(app)


def route_problem(path: str) -> Problem:
    return _problem(HTTPStatus.NOT_FOUND, _NO_ROUTE, f"there is no route {shown(path, most=200)}")


def _problem(status: HTTPStatus, code: str, detail: str) -> Problem:
    return {"type": "about:blank", "title": status.phrase, "status": status.value, "code": code, "detail": detail}


def response(problem: Problem) -> Response[str]:
    """Return the answer to a request that failed."""
    status = problem["status"]
    retry = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    return Response(
        status_code=status,
        content_type="application/problem+json",
        body=json.dumps(problem),
        headers={"Retry-After": _RETRY_AFTER_SECONDS} if retry else {},
    )
