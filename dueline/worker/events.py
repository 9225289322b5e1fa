"""What happens to jobs in a worker, for logs and metrics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from logging import DEBUG, INFO, WARNING
from typing import Self

from dueline.core.text import name_of, stack_of, text_of
from dueline.errors import DuelineError


class EventKind(StrEnum):
    """What happened: to a queue in this process, to a message, or to the schedules in the code.

    `level` is that of its log line; `counts` says what Prometheus counts of it, if it does.
    """

    level: int
    counts: str

    def __new__(cls, value: str, level: int, counts: str = "") -> Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.level, kind.counts = value, level, counts
        return kind

    OPENED = "opened", INFO  # this process begins to process the queue
    CLOSED = "closed", INFO  # it has ended
    RECEIVED = "received", DEBUG, "Jobs that were received."
    STARTED = "started", DEBUG  # its handler begins
    SUCCEEDED = "succeeded", INFO, "Jobs whose handler returned."
    RETRIED = "retried", WARNING, "Jobs that failed and went back into their queue."
    FAILED = "failed", WARNING, "Jobs that went into the dead-letter queue."
    SKIPPED = "skipped", DEBUG, "Jobs that were skipped because they were cancelled."
    OVERLAPPED = "overlapped", INFO, "Jobs that were skipped because another job of their schedule had not ended."
    RETURNED = "returned", DEBUG, "Jobs that were put back before their handler ran."
    LOST = "lost", WARNING, "Jobs whose claim was lost, so that they were not acknowledged."
    TROUBLE = "trouble", WARNING, "Requests to AWS that failed for good."
    CHANGED = "changed", INFO  # the queue's published settings have changed, and are used from now on
    DECLARED = "declared", INFO  # a schedule in the code is as it is there


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
