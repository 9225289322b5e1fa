"""What is not carried out, as problem details (RFC 9457): whoever looks at the page is told why."""

from http import HTTPStatus
from http.client import responses
from typing import Any

from dueline.console.web import Answer
from dueline.errors import DuelineError

TYPE = "application/problem+json"


class Refused(Exception):
    """A request that is not carried out: its status, and the reason for people.

    `headers` go with the answer; `code` tells machines apart what has one status.
    """

    def __init__(
        self, status: int, detail: str, *, code: str = "refused", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers = status, code, headers or {}


def told(error: Exception) -> dict[str, Any]:
    """Return the problem details of an error: of one that is nobody's refusal, its type alone."""
    if not isinstance(error, Refused | DuelineError):
        what = f"the console failed: {type(error).__name__}"
        error = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, what, code="console_failed")
    title = responses.get(error.status, f"Status {error.status}")
    return {"type": "about:blank", "title": title, "status": error.status, "code": error.code, "detail": str(error)}


def of(error: Exception) -> Answer:
    """Return an error as an answer."""
    details = told(error)
    headers = error.headers if isinstance(error, Refused) else {}
    return Answer.json(details, details["status"], headers={**headers, "content-type": TYPE})
