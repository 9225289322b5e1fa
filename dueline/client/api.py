"""What a client asks of a deployment, over HTTP or straight on AWS."""

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import Protocol, Self, TypeVar

from dueline.client.answers import Job
from dueline.client.http_schedules import HttpSchedules
from dueline.client.id_terms import IdTerms
from dueline.client.listed import ScheduledJob
from dueline.client.new_job import NewJob
from dueline.errors import DuelineError
from dueline.lookup.control import Control
from dueline.lookup.overview import Overview
from dueline.model.job import JobId, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate
from dueline.model.trace import TraceContext

MOST_AT_ONCE = 500


class Draft(Protocol):
    """A job that was checked, as it is sent each time it is tried.

    `key` is the idempotency key that it goes under, if any; `size` the bytes that it takes of a request. Drafts
    that are sent together are of one `group`.
    """

    @property
    def key(self) -> str | None: ...

    @property
    def size(self) -> int: ...

    @property
    def group(self) -> Hashable: ...

    def after(self, error: DuelineError) -> Self:
        """Return what to send after that error, which may hide that this was sent, so that there is one job."""


D = TypeVar("D", bound=Draft)


class Api(Protocol[D]):
    """Asks once, and is safe to ask again. Every call may raise Throttled, Unavailable or Forbidden."""

    def draft(self, job: NewJob, *, trace: TraceContext | None = None) -> D:
        """Check a job, which is to carry `trace`, before any request.

        Raises InvalidJob, naming the field, its value and what is allowed.
        """

    def schedule(self, queue: str, drafts: Sequence[D]) -> Sequence[Job | DuelineError]:
        """Schedule up to 500 jobs; return the job or the error of each, in order."""

    def id_terms(self, queue: str) -> IdTerms | None:
        """Return what the ids of a queue's jobs need, None where that is not told. Raises QueueNotFound."""

    def get(self, id: JobId) -> Job:
        """Look a job up. Raises JobNotFound."""

    def cancel(self, queue: str, ids: Sequence[JobId]) -> Sequence[State | DuelineError]:
        """Take up to 500 jobs of one queue back; return what that promises, or the error of each, in order."""

    def reschedule(self, id: JobId, *, at: datetime | None, delay: float | None, key: str) -> Job:
        """Move a job to `at`, or `delay` seconds from the first call under `key`; return the one that took its place.

        Raises AlreadyFinished, RunOfSchedule or JobNotFound.
        """

    def page(
        self, queue: str, *, start: datetime | None, end: datetime | None, after: str
    ) -> tuple[Sequence[ScheduledJob], str]:
        """List scheduled jobs in due order; return a page, and the `after` of the next one: "" when there is none."""

    def queues(self) -> Sequence[QueueSettings]:
        """Return the queues."""

    def overview(self, queue: str) -> Overview:
        """Return how a queue is doing. Raises QueueNotFound."""

    def pause(self, queue: str) -> Control:
        """Let a queue's workers begin no more jobs; return what holds then. Raises QueueNotFound."""

    def resume(self, queue: str) -> Control:
        """Let a queue's workers go on; return what holds then. Raises QueueNotFound."""

    def set_rate(self, queue: str, rate: Rate | None) -> Control:
        """Limit how many jobs a queue's workers begin, or lift the limit; return what holds then.

        Raises QueueNotFound.
        """

    def schedules(self, queue: str) -> HttpSchedules:
        """Return the schedules of a queue, before any request. Raises Forbidden where HTTP alone has them."""
