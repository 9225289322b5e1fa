"""HTTP answers: JSON objects, or errors, read from their problem details (RFC 9457)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from dueline.errors import (
    OVER_HTTP,
    AlreadyFinished,
    DeploymentNotFound,
    DuelineError,
    Forbidden,
    InvalidJob,
    KeyReused,
    PayloadTooLarge,
    Throttled,
    Unavailable,
)

_BY_CODE: dict[object, type[DuelineError]] = {error.code: error for error in OVER_HTTP}
# For what API Gateway refuses itself, and for codes of a later version.
_BY_STATUS: dict[int, type[DuelineError]] = {
    HTTPStatus.BAD_REQUEST: InvalidJob,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: DeploymentNotFound,
    HTTPStatus.CONFLICT: AlreadyFinished,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: PayloadTooLarge,
    HTTPStatus.UNPROCESSABLE_ENTITY: KeyReused,
    HTTPStatus.TOO_MANY_REQUESTS: Throttled,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    """An answer to a request; the names of its headers are in lower case. `asked` is the request's method and path."""

    asked: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def content(self, *, now: datetime) -> dict[str, Any]:
        """Return the JSON object in this answer, or raise the error that it reports.

        An error quotes nothing but a problem's own text: an answer that echoes the request would show a payload.
        """
        content = self._json()
        if not self.is_success:
            error = error_of(content, status=self.status, asked=self.asked)
            error.retry_after = _seconds_to_wait(self.headers.get("retry-after", ""), now=now)
            raise error
        if not isinstance(content, dict):
            raise Unavailable(f"{self.asked}: the answer is no JSON object")
        return content

    @property
    def is_success(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def _json(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def error_of(content: Any, *, status: object, asked: str) -> DuelineError:
    """Return the error that problem details report; without any, the error that the HTTP status stands for."""
    problem: Mapping[str, Any] = content if isinstance(content, dict) else {}
    code = problem.get("code")
    kind = _BY_CODE.get(code) if isinstance(code, str) else None
    error = (kind or _kind_of(status))(_detail(problem) or f"{asked}: {_message(problem) or f'status {status}'}")
    id = problem.get("id")
    error.job_id = id if isinstance(id, str) else None
    error.status = status if isinstance(status, int) else error.status
    return error


def _kind_of(status: object) -> type[DuelineError]:
    if not isinstance(status, int):
        return Unavailable
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unavailable
    return _BY_STATUS.get(status, DuelineError)


def _detail(problem: Mapping[str, Any]) -> str | None:
    return detail if isinstance(detail := problem.get("detail"), str) else None


def _message(answer: Mapping[str, Any]) -> str | None:
    """Return what API Gateway says of a request that it refused itself."""
    return next((text for name in ("message", "Message") if isinstance(text := answer.get(name), str)), None)


def _seconds_to_wait(retry_after: str, *, now: datetime) -> float | None:
    """Return the seconds that Retry-After names, itself or by a date (RFC 9110); None when it names neither."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - now).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return None
