"""Faults: translate botocore's exceptions into Dueline's errors, in this one place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from dueline import errors

Answer = TypeVar("Answer")

_THROTTLED = {
    "OverLimit",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "SlowDown",
    "ThrottlingException",
    "TooManyRequestsException",
    "Throttling",
    "KMS.ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
}
# What DynamoDB gives as the reason of one action for which a whole transaction was cancelled.
_REFUSED_ACTION = "ConditionalCheckFailed"
_THROTTLED_ACTIONS = {"TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
# https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
_TOO_LARGE = {"RequestEntityTooLargeException", "RequestTooLargeException"}
_QUEUE_GONE = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
_FORBIDDEN = {
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "OptInRequired",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
# What SQS says of a receipt that is over. Others, such as throttling, may pass.
LOST_CLAIM = {
    "AWS.SimpleQueueService.MessageNotInflight",
    "InvalidParameterValue",
    "MessageNotInflight",
    "ReceiptHandleIsInvalid",
}
# What SQS says of content that can never be sent.
UNSENDABLE = {
    "AWS.SimpleQueueService.BatchRequestTooLong",
    "BatchRequestTooLong",
    "InvalidMessageContents",
    "InvalidParameterValue",
}


@contextmanager
def map_botocore_errors(doing: str) -> Iterator[None]:
    """Raise Dueline's errors in place of botocore's, and of what reading an odd answer raises.

    `doing` says what was being done.
    """
    try:
        yield
    except errors.DuelineError:
        raise
    except ClientError as error:
        raise _of(error, doing) from error
    except BotoCoreError as error:
        raise errors.Unavailable(f"{doing}: {error}") from error
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise errors.Unavailable(f"{doing}: the answer is not as AWS documents it ({type(error).__name__})") from error
    except RuntimeError as error:
        if "credentials are still expired" not in str(error):
            raise
        expired = exceptions.CredentialRetrievalError(provider="the session", error_msg=str(error))
        raise errors.Unavailable(f"{doing}: {error}") from expired


@contextmanager
def map_caller_errors(doing: str) -> Iterator[None]:
    """Like `map_botocore_errors` with a caller's own credentials: what no retry can help raises Forbidden."""
    try:
        with map_botocore_errors(doing):
            yield
    except errors.Unavailable as fault:
        raise as_caller_error(fault) from fault.__cause__


def as_caller_error(error: errors.DuelineError) -> errors.DuelineError:
    """Return what an error means where the credentials are a caller's, about the same job."""
    if not (isinstance(error, errors.Unavailable) and isinstance(error.__cause__, BotoCoreError | ClientError)):
        return error
    meant = _of_callers(error.__cause__, str(error))
    meant.job_id, meant.__cause__ = error.job_id, error.__cause__
    return meant


def unless(is_such: Callable[[ClientError], bool], request: Callable[[], Answer]) -> Answer | None:
    """Make a request; return None in place of such an error."""
    try:
        return request()
    except ClientError as error:
        if is_such(error):
            return None
        raise


def is_failed_condition(error: ClientError) -> bool:
    """Return whether a conditional write was refused by its condition, of a transaction by that of any action."""
    return _code(error) == "ConditionalCheckFailedException" or _REFUSED_ACTION in _cancellation_reasons(error)


def failed_conditions(error: ClientError) -> set[int]:
    """Return the indexes of a transaction's actions whose conditions refused it."""
    reasons = error.response.get("CancellationReasons", [])
    return {index for index, reason in enumerate(reasons) if reason.get("Code") == _REFUSED_ACTION}


def _has_code(*codes: str) -> Callable[[ClientError], bool]:
    return lambda error: _code(error) in codes


# The caller's policies do not allow a request.
is_refused = _has_code("AccessDenied", "AccessDeniedException")
# What a request names does not exist: an alias, a parameter, a table, a log, a queue.
is_missing = _has_code("ParameterNotFound", "ResourceNotFoundException", *_QUEUE_GONE)
# S3 has no such object, or refuses to read it: without the right to list, it does not say which.
is_refused_object = _has_code("403", "404", "AccessDenied", "NoSuchBucket", "NoSuchKey")
# S3 has no such object: a HEAD has no body, and so no code but its status.
is_missing_object = _has_code("404", "NoSuchKey")
# DynamoDB refused a request as it is: of a change of TTL, because it was changed lately.
is_refused_setting = _has_code("ValidationException")


def is_conflict(error: ClientError) -> bool:
    """Return whether a write met a transaction at the same row, which ends within milliseconds."""
    if is_failed_condition(error):
        return False
    return _code(error) == "TransactionConflictException" or "TransactionConflict" in _cancellation_reasons(error)


def _of(error: ClientError, doing: str) -> errors.DuelineError:
    code, reasons = _code(error), _cancellation_reasons(error)
    message = f"{doing}: {code}: {error.response['Error'].get('Message', '')}"
    if code in _THROTTLED or reasons & _THROTTLED_ACTIONS:
        return errors.Throttled(message)
    if code in _QUEUE_GONE:
        return errors.QueueNotFound(message)
    if code in _TOO_LARGE:
        return errors.PayloadTooLarge(message)
    return errors.InvalidJob(message) if code in UNSENDABLE else errors.Unavailable(message)


def _cancellation_reasons(error: ClientError) -> set[str]:
    """Return why a transaction was cancelled, as the codes of its actions."""
    return {str(reason.get("Code")) for reason in error.response.get("CancellationReasons", [])}


def _of_callers(error: BotoCoreError | ClientError, message: str) -> errors.DuelineError:
    if isinstance(error, ClientError):
        if _code(error) == "ParameterNotFound":
            return errors.DeploymentNotFound(f"{message}: there is none in this account and region")
        return errors.Forbidden(message) if _code(error) in _FORBIDDEN else errors.Unavailable(message)
    # Of what botocore raises, only this comes from the network; the rest from the caller's settings and credentials.
    is_of_network = isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError)
    return errors.Unavailable(message) if is_of_network else errors.Forbidden(message)


def _code(error: ClientError) -> str:
    return str(error.response["Error"].get("Code", "?"))
