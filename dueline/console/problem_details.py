"""Errors as problem details (RFC 9457), which the page shows."""

from http import HTTPStatus
from http.client import responses
from typing import Any

from starlette.responses import JSONResponse, Response

from dueline.errors import DuelineError

PROBLEM_TYPE = "application/problem+json"


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


def problem_response(error: Exception) -> Response:
    """Return the response that reports an error."""
    details = to_problem(error)
    headers = error.headers if isinstance(error, Refused) else None
    return JSONResponse(details, details["status"], headers=headers, media_type=PROBLEM_TYPE)
