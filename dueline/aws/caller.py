"""Who calls: the ARN of a session's credentials."""

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from dueline.aws import clients
from dueline.aws.faults import of_callers
from dueline.errors import DuelineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from boto3 import Session

_LONGEST_REQUEST = timedelta(seconds=5)


def caller_of(session: "Session | None") -> "Callable[[], str | None]":
    """Return what asks STS, once, who the credentials are of: None without a session, or where STS does not tell."""

    @cache
    def arn() -> str | None:
        if session is None:
            return None
        try:
            with of_callers("asking who the AWS credentials are of"):
                return str(clients.sts(session, longest=_LONGEST_REQUEST).get_caller_identity()["Arn"])
        except DuelineError:
            return None

    return arn
