"""Errors as HTTP answers: problem details (RFC 9457), their status decided here alone."""

import json
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from dueline.errors import (
    RETRYABLE,
    AlreadyFinished,
    DuelineError,
    InvalidJob,
    JobNotFound,
    KeyReused,
    PayloadTooLarge,
    QueueNotFound,
    Throttled,
    Unavailable,
)

_STATUS: dict[type[DuelineError], HTTPStatus] = {
    KeyReused: HTTPStatus.UNPROCESSABLE_ENTITY,
    PayloadTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    InvalidJob: HTTPStatus.BAD_REQUEST,
    QueueNotFound: HTTPStatus.NOT_FOUND,
    JobNotFound: HTTPStatus.NOT_FOUND,
    AlreadyFinished: HTTPStatus.CONFLICT,
    Throttled: HTTPStatus.TOO_MANY_REQUESTS,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
_NO_ROUTE = "route_not_found"
_RETRY_AFTER_SECONDS = "1"


def problem(error: DuelineError) -> dict[str, Any]:
    """Return what is told of an error, with the job's id where it may be scheduled all the same.

    Its `code` is for machines: it tells apart what has one status, and never changes.
    What AWS said to a fault of its own is for our log, not for callers.
    """
    status = _STATUS[type(error)]
    detail = f"{status.phrase}: try again" if isinstance(error, RETRYABLE) else str(error)
    told = _problem(status, error.code, detail)
    return told if error.job_id is None else {**told, "id": error.job_id}


def response(error: DuelineError) -> Response[str]:
    """Return the answer to a request that failed."""
    return _response(problem(error))


def no_route(path: str) -> Response[str]:
    """Return the answer to a request for which there is no route."""
    return _response(_problem(HTTPStatus.NOT_FOUND, _NO_ROUTE, f"there is no route {path!r}"))


def _problem(status: HTTPStatus, code: str, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": status.phrase, "status": status.value, "code": code, "detail": detail}


def _response(told: dict[str, Any]) -> Response[str]:
    status = told["status"]
    retry = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    return Response(
        status_code=status,
        content_type="application/problem+json",
        body=json.dumps(told),
        headers={"Retry-After": _RETRY_AFTER_SECONDS} if retry else {},
    )
