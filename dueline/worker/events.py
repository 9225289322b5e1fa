"""What happens to jobs in a worker, for logs and metrics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from dueline.core.text import name_of, stack_of, text_of
from dueline.errors import DuelineError


class EventKind(StrEnum):
    """What happened: to a queue in this process, to a message, or to the schedules in the code."""

    OPENED = "opened"  # this process begins to process the queue
    CLOSED = "closed"  # it has ended
    RECEIVED = "received"
    STARTED = "started"  # its handler begins
    SUCCEEDED = "succeeded"
    RETRIED = "retried"  # it goes back into its queue
    UNHANDLED = "unhandled"  # the same, as no handler here takes it
    NO_HANDLER = "no handler"  # there are such jobs: once a minute for each kind
    FAILED = "failed"  # it goes to the dead-letter queue
    SKIPPED = "skipped"  # it was cancelled
    OVERLAPPED = "overlapped"  # it is skipped: another job of its schedule has not ended
    RETURNED = "returned"  # it was put back before its handler ran
    LOST = "lost"  # the claim was lost, so its message was not acknowledged
    TROUBLE = "trouble"  # AWS failed: it will be tried again
    CHANGED = "changed"  # the queue's published settings have changed, and are used from now on
    DECLARED = "declared"  # a schedule in the code is as it is there


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """What happened to a job of a queue, never its payload. Times are in seconds.

    The job is of the kind `job_kind`, and was late by at least `lateness`. `kinds` are those for which the queue has
    handlers, when it is opened. `stack` is that of the error, with its frames.
    """

    kind: EventKind
    queue: str
    job: str = ""
    job_kind: str = ""
    kinds: tuple[str, ...] = ()
    attempt: int = 0
    lateness: float | None = None
    duration: float | None = None
    delay: int | None = None
    error: str = ""
    reason: str = ""
    stack: str = field(default="", compare=False)


Report = Callable[[Event], None]


def error_event(fault: BaseException, *, queue: str, job: str = "", job_kind: str = "", what: str = "") -> Event:
    """Return the event that reports a fault: by its text, and by its type and stack where it is none of Dueline's."""
    text, is_own = text_of(fault), isinstance(fault, DuelineError)
    reason = text if is_own else f"{name_of(fault)}: {text}"
    reason = f"{what}: {reason}" if what else reason
    stack = "" if is_own else stack_of(fault)
    return Event(kind=EventKind.TROUBLE, queue=queue, job=job, job_kind=job_kind, reason=reason, stack=stack)
