"""What is not carried out, as problem details (RFC 9457): whoever looks at the page is told why."""

from http import HTTPStatus
from typing import Any

from dueline.console.web import Answer
from dueline.errors import (
    AlreadyFinished,
    DeploymentNotFound,
    DuelineError,
    Forbidden,
    InvalidJob,
    InvalidSchedule,
    JobNotFound,
    QueueNotFound,
    ScheduleNotFound,
    Throttled,
    Unavailable,
)

TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[DuelineError], HTTPStatus], ...] = (
    (InvalidJob, HTTPStatus.BAD_REQUEST),
    (InvalidSchedule, HTTPStatus.BAD_REQUEST),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (QueueNotFound, HTTPStatus.NOT_FOUND),
    (JobNotFound, HTTPStatus.NOT_FOUND),
    (ScheduleNotFound, HTTPStatus.NOT_FOUND),
    (DeploymentNotFound, HTTPStatus.NOT_FOUND),
    (AlreadyFinished, HTTPStatus.CONFLICT),
    (Throttled, HTTPStatus.TOO_MANY_REQUESTS),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)


class Refused(Exception):
    """A request that is not carried out: its status, the reason for people, and what else the problem tells.

    `headers` go with the answer; `code` tells machines apart what has one status.
    """

    def __init__(
        self, status: int, detail: str, *, code: str = "refused", headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers, self.more = status, code, headers or {}, more


def of(error: Refused | DuelineError) -> Answer:
    """Return an error as an answer."""
    headers = error.headers if isinstance(error, Refused) else {}
    details = told(error)
    return Answer.json(details, details["status"], content_type=TYPE, **headers)


def told(error: Refused | DuelineError) -> dict[str, Any]:
    """Return the problem details of an error."""
    if isinstance(error, Refused):
        return _details(error.status, str(error), error.code) | error.more
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
    return _details(status, str(error), error.code) | ({} if error.job_id is None else {"id": error.job_id})


def problem(status: int, detail: str, *, code: str) -> Answer:
    """Return problem details as an answer."""
    return Answer.json(_details(status, detail, code), status, content_type=TYPE)


def _details(status: int, detail: str, code: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": _title(status), "status": status, "code": code, "detail": detail}


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"Status {status}"
