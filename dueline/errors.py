"""What can go wrong, as one tree.

DuelineError
├── InvalidJob (ValueError)         400  the request is wrong, and trying again will not help
│   └── PayloadTooLarge             413
├── InvalidSchedule (ValueError)    400  the schedule is wrong, and trying again will not help
├── Forbidden                       403  the AWS credentials are missing or do not allow the request
├── QueueNotFound (LookupError)     404  queues.yaml has no such queue, or its SQS queue was deleted
├── JobNotFound (LookupError)       404  there is no job with that id in that queue, or not any more
├── ScheduleNotFound (LookupError)  404  the queue has no such schedule, or not any more
├── DeploymentNotFound (LookupError)     no such deployment in the account and region, or no Dueline at that URL
├── DeploymentTooOld                     the deployment does not read what this direct client writes: deploy it again
├── ClientTooOld                         the deployment takes a later version than this direct client writes: upgrade
├── AlreadyFinished                 409  it is too late: the job was sent to its queue, cancelled or rescheduled
├── RunOfSchedule                   409  the job is a run of a schedule: it can be cancelled, but not rescheduled
├── ScheduleChanged                 412  somebody else has changed the schedule since it was read
├── TooManySchedules                409  the queue has as many schedules as it may have
├── TooManyChanges                  409  the schedule was changed too often within its jitter: change it later
├── IdReused (ValueError)           409  the id belongs to a job with another payload
├── KeyReused (ValueError)          422  the idempotency key belongs to a job with another payload, or to other runs
├── Throttled                       429  AWS throttled the request: try again later
└── Unavailable                     503  AWS failed, or its answer was lost: try again
    └── NotYet                      503  nothing failed, but it cannot be done yet: try again
"""

from typing import ClassVar, Self


class DuelineError(Exception):
    """The base of every error that Dueline raises. The message says what was wrong and what is allowed.

    `code` identifies the kind of error in the API's answers and never changes; `status` is that of the answer, and of a
    kind of error the one that the API answers with.
    `job_id` is the id of the job, where it is known. `key` is the idempotency key to schedule the job with again, where
    it has one. `retry_after` is how many seconds the API asked to wait before the next attempt.
    """

    code: ClassVar[str] = "error"
    status: int = 500
    job_id: str | None = None
    key: str | None = None
    retry_after: float | None = None

    def copy(self, *, job_id: str | None = None) -> Self:
        """Return the same error for the job with that id, where one failure concerns several jobs."""
        copy = type(self)(str(self))
        copy.job_id, copy.key, copy.retry_after = job_id or self.job_id, self.key, self.retry_after
        copy.status = self.status
        copy.__cause__ = self.__cause__
        return copy


class InvalidJob(DuelineError, ValueError):
    """The request is wrong: the message names the field, its value and what is allowed. Trying again will not help."""

    code = "invalid_job"
    status = 400


class PayloadTooLarge(InvalidJob):
    """The payload has over 10 MiB.

    Or over 256 KiB in a message or a row that was written without the client and the API.
    """

    code = "payload_too_large"
    status = 413


class InvalidSchedule(DuelineError, ValueError):
    """The schedule is wrong: the message names the field, its value and what is allowed. Nothing was changed."""

    code = "invalid_schedule"
    status = 400


class Forbidden(DuelineError):
    """The caller's AWS credentials are missing, have expired, or do not allow the request."""

    code = "forbidden"
    status = 403


class QueueNotFound(DuelineError, LookupError):
    """No queue of that name is declared in queues.yaml, or its SQS queue was deleted."""

    code = "queue_not_found"
    status = 404


class JobNotFound(DuelineError, LookupError):
    """There is no job with that id: it is malformed, belongs to another queue, or is past its retention."""

    code = "job_not_found"
    status = 404


class ScheduleNotFound(DuelineError, LookupError):
    """The queue has no schedule of that name, or it was deleted."""

    code = "schedule_not_found"
    status = 404


class DeploymentNotFound(DuelineError, LookupError):
    """There is no deployment of that name in the caller's account and region, or no Dueline at that URL."""

    code = "deployment_not_found"
    status = 404


class DeploymentTooOld(DuelineError):
    """The deployment does not read what this version of a direct client writes. Nothing was written."""

    code = "deployment_too_old"


class ClientTooOld(DuelineError):
    """The deployment no longer takes what this version of a direct client writes. Nothing was written."""

    code = "client_too_old"


class AlreadyFinished(DuelineError):
    """It is too late: the job was or may have been sent to its queue, or was cancelled. Nothing was changed.

    If it was rescheduled, `job_id` is the id of the job that replaced it.
    """

    code = "already_finished"
    status = 409


class RunOfSchedule(DuelineError):
    """The job is a run of a schedule, which cannot be rescheduled: cancel it, or run the schedule now.

    Nothing was changed.
    """

    code = "run_of_schedule"
    status = 409


class ScheduleChanged(DuelineError):
    """The schedule is not as the caller read it: somebody else has changed it since. Nothing was changed.

    Or it is there, and was only to be created.
    """

    code = "schedule_changed"
    status = 412


class TooManySchedules(DuelineError):
    """The queue has as many schedules as it may have. Nothing was changed."""

    code = "too_many_schedules"
    status = 409


class TooManyChanges(DuelineError):
    """The schedule was changed too often within its jitter: the message says from when on it can be changed again.

    A pause or a delete goes at once. Nothing was changed.
    """

    code = "too_many_changes"
    status = 409


class IdReused(DuelineError, ValueError):
    """The id that the caller made belongs to a job with another payload, tenant or priority. Nothing was changed."""

    code = "id_reused"
    status = 409


class KeyReused(DuelineError, ValueError):
    """The idempotency key was used for a job with another payload, or for other runs. Nothing was scheduled."""

    code = "key_reused"
    status = 422


class Throttled(DuelineError):
    """AWS throttled the request: try again later. An earlier attempt, whose answer was lost, may have succeeded."""

    code = "throttled"
    status = 429


class Unavailable(DuelineError):
    """AWS failed, or its answer was lost: the request may or may not have been carried out. Try again."""

    code = "unavailable"
    status = 503


class NotYet(Unavailable):
    """Nothing failed, but it cannot be done yet, or there was no time left to begin it: the message says which.

    Try again.
    """

    code = "not_yet"


RETRYABLE = (Throttled, Unavailable)
# What the HTTP API tells, by its code and status, and what its clients raise. The others are of clients alone.
OVER_HTTP: tuple[type[DuelineError], ...] = (
    InvalidJob,
    PayloadTooLarge,
    InvalidSchedule,
    QueueNotFound,
    JobNotFound,
    ScheduleNotFound,
    AlreadyFinished,
    RunOfSchedule,
    ScheduleChanged,
    TooManySchedules,
    TooManyChanges,
    IdReused,
    KeyReused,
    Throttled,
    Unavailable,
    NotYet,
)
