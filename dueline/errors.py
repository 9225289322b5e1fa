"""What can go wrong, as one tree.

DuelineError
├── InvalidJob (ValueError)         400  what was asked can never be done; the message says why
│   └── PayloadTooLarge             413
├── Forbidden                       403  the caller's AWS credentials are missing or do not allow it
├── QueueNotFound (LookupError)     404  no such queue, in the registry or on SQS
├── JobNotFound (LookupError)       404  the id is malformed, of another queue, or nothing is known of it
├── DeploymentNotFound (LookupError)     no such deployment in the account and region, or no Dueline at that URL
├── AlreadyFinished                 409  it is too late: the job has left for its queue, or was taken back
├── KeyReused (ValueError)          422  the idempotency key belongs to a job with another payload
├── Throttled                       429  AWS asked to slow down: try again later
└── Unavailable                     503  AWS did not do it, or its answer was lost: try again
    └── NotYet                      503  it cannot be done yet, and the message says why: try again
"""

from typing import ClassVar, Self


class DuelineError(Exception):
    """Anything that Dueline raises on purpose.

    `code` names its kind to machines, in the API's answers, and never changes. `job_id` is the job that it is about,
    where one has an id already, and `key` the idempotency key to ask with again, where a client made or was given one.
    `retry_after` is how many seconds the API asked to wait before that.
    """

    code: ClassVar[str] = "error"
    job_id: str | None = None
    key: str | None = None
    retry_after: float | None = None

    def copy(self, *, job_id: str | None = None) -> Self:
        """Return the same error, about the job of that id; one error may be about many."""
        copy = type(self)(str(self))
        copy.job_id, copy.key, copy.retry_after = job_id or self.job_id, self.key, self.retry_after
        copy.__cause__ = self.__cause__
        return copy


class InvalidJob(DuelineError, ValueError):
    """A job that can never be scheduled as it was asked for."""

    code = "invalid_job"


class PayloadTooLarge(InvalidJob):
    """A payload over 10 MiB, or one over 256 KiB that was put into a message or a row by other means than the API."""

    code = "payload_too_large"


class Forbidden(DuelineError):
    """The caller's AWS credentials are missing, no longer valid, or do not allow what was asked."""

    code = "forbidden"


class QueueNotFound(DuelineError, LookupError):
    """A queue that is not in the registry, or is gone from SQS."""

    code = "queue_not_found"


class JobNotFound(DuelineError, LookupError):
    """A job of which nothing is known."""

    code = "job_not_found"


class DeploymentNotFound(DuelineError, LookupError):
    """A deployment that is not in the caller's account and region, or a URL at which there is no Dueline."""

    code = "deployment_not_found"


class AlreadyFinished(DuelineError):
    """A job that has left for its queue, or may have, or was taken back: nothing was changed.

    `job_id` names the job that took its place, if one did.
    """

    code = "already_finished"


class KeyReused(DuelineError, ValueError):
    """An idempotency key that belongs to a job with another payload: nothing was scheduled."""

    code = "key_reused"


class Throttled(DuelineError):
    """AWS asked to slow down: it may or may not be done (an earlier try's answer may be lost), try again later."""

    code = "throttled"


class Unavailable(DuelineError):
    """AWS failed, or its answer was lost: it may or may not be done, try again."""

    code = "unavailable"


class NotYet(Unavailable):
    """Nothing failed: what is asked for is not there yet, or there was no time left to begin it. Try again."""

    code = "not_yet"


RETRYABLE = (Throttled, Unavailable)
