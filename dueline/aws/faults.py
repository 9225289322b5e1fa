"""Translate what botocore raises into Dueline's errors, in this one place."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from dueline.errors import DuelineError, InvalidJob, QueueNotFound, Throttled, Unavailable

_THROTTLED = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "ThrottlingException",
    "Throttling",
    "KMS.ThrottlingException",
}
_QUEUE_GONE = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
_UNSENDABLE = {
    "AWS.SimpleQueueService.BatchRequestTooLong",
    "BatchRequestTooLong",
    "InvalidMessageContents",
    "InvalidParameterValue",
}


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise Dueline's errors for botocore's; `doing` says what was tried."""
    try:
        yield
    except ClientError as error:
        raise _of(error, doing) from error
    except BotoCoreError as error:
        raise Unavailable(f"{doing}: {error}") from error


def is_refused_condition(error: ClientError) -> bool:
    """Tell whether a conditional write was refused by its condition."""
    return _code(error) == "ConditionalCheckFailedException"


def is_unsendable(code: str) -> bool:
    """Tell whether SQS's error code says that a message's content can never be sent."""
    return code in _UNSENDABLE


def _of(error: ClientError, doing: str) -> DuelineError:
    code = _code(error)
    message = f"{doing}: {code}: {error.response['Error'].get('Message', '')}"
    if code in _THROTTLED:
        return Throttled(message)
    if code in _QUEUE_GONE:
        return QueueNotFound(message)
    return InvalidJob(message) if is_unsendable(code) else Unavailable(message)


def _code(error: ClientError) -> str:
    return str(error.response["Error"].get("Code", "?"))
