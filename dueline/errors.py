"""What can go wrong, as one tree.

DuelineError
├── InvalidJob (ValueError)         400  what was asked can never be done; the message says why
│   ├── PayloadTooLarge             413
│   └── KeyReused                   422  an idempotency key that was used for another payload
├── QueueNotFound (LookupError)     404  no such queue, in the registry or on SQS
├── JobNotFound (LookupError)       404  the id is malformed, of another queue, or nothing is known of it
├── AlreadyFinished                 409  the job has left for its queue, was cancelled, or was moved before
├── Throttled                       429  AWS asked to slow down: try again later
└── Unavailable                     503  AWS did not do it, or its answer was lost: try again
"""


class DuelineError(Exception):
    """Anything that Dueline raises on purpose. `job_id` is the job that it is about, where one has an id already."""

    job_id: str | None = None


class InvalidJob(DuelineError, ValueError):
    """A job that can never be scheduled as it was asked for."""


class PayloadTooLarge(InvalidJob):
    """A payload over the limit of 256 KiB."""


class KeyReused(InvalidJob):
    """An idempotency key that an earlier job has, with another payload."""


class QueueNotFound(DuelineError, LookupError):
    """A queue that is not in the registry, or is gone from SQS."""


class JobNotFound(DuelineError, LookupError):
    """A job of which nothing is known."""


class AlreadyFinished(DuelineError):
    """A job that can be moved no more. `job_id` names the one that took its place, if one did."""


class Throttled(DuelineError):
    """AWS asked to slow down: it may or may not be done (an earlier try's answer may be lost), try again later."""


class Unavailable(DuelineError):
    """AWS failed, or its answer was lost: it may or may not be done, try again."""


RETRYABLE = (Throttled, Unavailable)
