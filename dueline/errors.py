"""What can go wrong, as one tree.

DuelineError
├── InvalidJob (ValueError)         the request is wrong, and trying again will not help
│   └── PayloadTooLarge             the payload has over 10 MiB
├── InvalidSchedule (ValueError)    the schedule is wrong, and trying again will not help
├── Forbidden                       the AWS credentials are missing or do not allow the request
├── QueueNotFound (LookupError)     queues.yaml has no such queue, or its SQS queue was deleted
├── JobNotFound (LookupError)       there is no job with that id in that queue, or not any more
├── ScheduleNotFound (LookupError)  the queue has no such schedule, or not any more
├── DeploymentNotFound (LookupError)  no such deployment in the account and region, or no Dueline at that URL
├── DeploymentTooOld                the deployment does not read what this direct client writes: deploy it again
├── ClientTooOld                    the deployment takes a later version than this direct client writes: upgrade
├── AlreadyFinished                 it is too late: the job was sent to its queue, or cancelled
├── JobExists                       another job has the key, and the call was to fail then
├── RunOfSchedule                   the job is a run of a schedule: it can be cancelled, but not rescheduled
├── ScheduleChanged                 somebody else has changed the schedule since it was read
├── TooManySchedules                the queue has as many schedules as it may have
├── TooManyChanges                  the schedule was changed too often within its jitter: change it later
├── IdReused (ValueError)           the id belongs to a job with another payload
├── KeyReused (ValueError)          the key or idempotency key belongs to a job with another payload, or to other runs
├── Throttled                       AWS throttled the request: try again later
└── Unavailable                     AWS failed, or its answer was lost: try again
    └── NotYet                      nothing failed, but it cannot be done yet: try again
"""

from collections import abc
from contextlib import contextmanager
from typing import ClassVar, NamedTuple, Self


class DuelineError(Exception):
    """The base of every error that Dueline raises. The message says what was wrong and what is allowed.

    `code`, `status` and `exit_code` are those of its kind in ERRORS; `status` is that of the API's answer, if there was
    one. `job_id` is the id of the job, where it is known, and `key` its key. `idempotency_key` is the name of the call,
    to schedule the job with again. `retry_after` is how many seconds the API says to wait before the next attempt.
    """

    code: ClassVar[str] = "error"
    status: int = 500
    exit_code: ClassVar[int] = 1
    job_id: str | None = None
    key: str | None = None
    idempotency_key: str | None = None
    retry_after: float | None = None

    def copy(self, *, job_id: str | None = None) -> Self:
        """Return the same error for the job with that id, where one failure concerns several jobs."""
        copy = type(self)(str(self))
        copy.job_id, copy.key, copy.retry_after = job_id or self.job_id, self.key, self.retry_after
        copy.idempotency_key = self.idempotency_key
        copy.status = self.status
        copy.__cause__ = self.__cause__
        return copy


class InvalidJob(DuelineError, ValueError):
    """The request is wrong: the message names the field, its value and what is allowed. Trying again will not help."""


class PayloadTooLarge(InvalidJob):
    """The payload has over 10 MiB.

    Or over 256 KiB in a message or a row that was written without the client and the API.
    """


class InvalidSchedule(DuelineError, ValueError):
    """The schedule is wrong: the message names the field, its value and what is allowed. Nothing was changed."""


class Forbidden(DuelineError):
    """The caller's AWS credentials are missing, have expired, or do not allow the request."""


class QueueNotFound(DuelineError, LookupError):
    """No queue of that name is declared in queues.yaml, or its SQS queue was deleted."""


class JobNotFound(DuelineError, LookupError):
    """There is no job with that id: it is malformed, belongs to another queue, or is past its retention."""


class ScheduleNotFound(DuelineError, LookupError):
    """The queue has no schedule of that name, or it was deleted."""


class DeploymentNotFound(DuelineError, LookupError):
    """There is no deployment of that name in the caller's account and region, or no Dueline at that URL."""


class DeploymentTooOld(DuelineError):
    """The deployment does not read what this version of a direct client writes. Nothing was written."""


class ClientTooOld(DuelineError):
    """The deployment no longer takes what this version of a direct client writes. Nothing was written."""


class AlreadyFinished(DuelineError):
    """It is too late: the job was or may have been sent to its queue, or was cancelled. Nothing was changed."""


class JobExists(DuelineError):
    """Another job has the key, and `if_exists` is "fail". `job_id` is its id. Nothing was changed."""


class RunOfSchedule(DuelineError):
    """The job is a run of a schedule, which cannot be rescheduled: cancel it, or run the schedule now.

    Nothing was changed.
    """


class ScheduleChanged(DuelineError):
    """The schedule is not as the caller read it: somebody else has changed it since. Nothing was changed."""


class TooManySchedules(DuelineError):
    """The queue has as many schedules as it may have. Nothing was changed."""


class TooManyChanges(DuelineError):
    """The schedule was changed too often within its jitter: the message says from when on it can be changed again.

    A pause or a delete goes at once. Nothing was changed.
    """


class IdReused(DuelineError, ValueError):
    """The id that the caller made is of a job with another payload, kind, tenant or priority. Nothing was changed."""


class KeyReused(DuelineError, ValueError):
    """The key, or idempotency key, is of a job with another payload, or of other runs. Nothing was scheduled."""


class Throttled(DuelineError):
    """AWS throttled the request: try again later. An earlier attempt, whose answer was lost, may have succeeded."""


class Unavailable(DuelineError):
    """AWS failed, or its answer was lost: the request may or may not have been carried out. Try again."""


class NotYet(Unavailable):
    """Nothing failed, but it cannot be done yet, or there was no time left to begin it: the message says which.

    Try again.
    """


class ErrorKind(NamedTuple):
    """A kind of error: its class, and how the API (`code`, `status`) and the command line (`exit_code`) report it.

    A `retryable` one may pass if the call is repeated. What is not `over_http` is raised by clients alone.
    """

    error: type[DuelineError]
    code: str
    status: int
    exit_code: int
    retryable: bool = False
    over_http: bool = True


# The first of a status is what a client raises for it where an answer has no known code.
ERRORS = (
    ErrorKind(InvalidJob, "invalid_job", 400, exit_code=2),
    ErrorKind(PayloadTooLarge, "payload_too_large", 413, exit_code=2),
    ErrorKind(InvalidSchedule, "invalid_schedule", 400, exit_code=2),
    ErrorKind(Forbidden, "forbidden", 403, exit_code=5),
    ErrorKind(DeploymentNotFound, "deployment_not_found", 404, exit_code=3, over_http=False),
    ErrorKind(QueueNotFound, "queue_not_found", 404, exit_code=3),
    ErrorKind(JobNotFound, "job_not_found", 404, exit_code=3),
    ErrorKind(ScheduleNotFound, "schedule_not_found", 404, exit_code=3),
    ErrorKind(AlreadyFinished, "already_finished", 409, exit_code=4),
    ErrorKind(JobExists, "job_exists", 409, exit_code=4),
    ErrorKind(RunOfSchedule, "run_of_schedule", 409, exit_code=2),
    ErrorKind(ScheduleChanged, "schedule_changed", 412, exit_code=4),
    ErrorKind(TooManySchedules, "too_many_schedules", 409, exit_code=2),
    ErrorKind(TooManyChanges, "too_many_changes", 409, exit_code=2),
    ErrorKind(IdReused, "id_reused", 409, exit_code=2),
    ErrorKind(KeyReused, "key_reused", 422, exit_code=2),
    ErrorKind(DeploymentTooOld, "deployment_too_old", 500, exit_code=1, over_http=False),
    ErrorKind(ClientTooOld, "client_too_old", 500, exit_code=1, over_http=False),
    ErrorKind(Throttled, "throttled", 429, exit_code=1, retryable=True),
    ErrorKind(Unavailable, "unavailable", 503, exit_code=1, retryable=True),
    ErrorKind(NotYet, "not_yet", 503, exit_code=1, retryable=True),
)
for _kind in ERRORS:
    _kind.error.code, _kind.error.status, _kind.error.exit_code = _kind.code, _kind.status, _kind.exit_code

RETRYABLE = tuple(kind.error for kind in ERRORS if kind.retryable)


# The module of each package that is not in the base install, and the extra that brings it.
_EXTRAS = {"aws_lambda_powertools": "worker", "prometheus_client": "worker", "cronsim": "schedules"}


@contextmanager
def missing_extras_named() -> abc.Iterator[None]:
    """Have an import that fails for want of one of Dueline's extras say what to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        why = f"{package} is not installed, which this needs: pip install 'dueline[{_EXTRAS[package]}]'"
        raise ModuleNotFoundError(why, name=missing.name) from None
