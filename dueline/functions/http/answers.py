"""The bodies of answers about jobs and queues.

docs/openapi.json is written from their types: a field is a line in its type, with the string below it as its
description, and a line where it is filled in.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any, NotRequired, TypeAlias, cast

from pydantic import ConfigDict, Field, JsonValue, with_config

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.client.models import Job, ScheduledJob, job_json
from dueline.config.registry import Registry
from dueline.core import instant
from dueline.core.cancel import CancelResult
from dueline.core.job import MAX_PRIORITY, JobId, Route, State, SubmitResult
from dueline.core.listing import JobPage, TrackedPage, place_text
from dueline.core.overview import Control, Overview
from dueline.core.payloads import METHOD, StartedUpload
from dueline.core.queue_settings import QueueSettings
from dueline.core.status import MAX_ERROR_CHARACTERS, JobStatus, Status
from dueline.errors import DuelineError
from dueline.functions.http.problems import Problem, problem

Instant: TypeAlias = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Positive: TypeAlias = Annotated[int, Field(ge=1)]
PriorityLevel: TypeAlias = Annotated[int, Field(ge=1, le=MAX_PRIORITY)]
_ROUTES: list[JsonValue] = [route.name.lower() for route in Route]
_STATES: list[JsonValue] = [state.value for state in State]
_PAYLOADS: list[JsonValue] = [{"required": [field]} for field in ("payload", "payload_text", "payload_at")]


class OutcomeAnswer(TypedDict):
    """What workers noted of a job: nothing before its first attempt."""

    attempts: NotRequired[Positive]
    """How often it was tried."""
    started: NotRequired[Instant]
    """When the last attempt began, in UTC."""
    ended: NotRequired[Instant]
    """When it ended, in UTC; not of one that runs."""
    error: NotRequired[Annotated[str, Field(max_length=MAX_ERROR_CHARACTERS)]]
    """Why it failed: the type of an error, or a short reason."""


class JobAnswer(OutcomeAnswer):
    """A job, and how far it has come."""

    id: str
    """The job's id, which says where it is."""
    queue: str
    """The queue's name in queues.yaml."""
    due: Instant
    """When it is due, in UTC, rounded up to a millisecond."""
    route: Annotated[str, Field(json_schema_extra={"enum": _ROUTES})]
    """How it gets to its queue: `direct`, or by the `table` if it is due later."""
    state: Annotated[str, Field(json_schema_extra={"enum": _STATES})]
    """`accepted`: on its way to the table (of an answer to a submission). `scheduled`: there. `dispatched`: handed to
    its queue; then, if that tracks, `running`, `succeeded`, `failed` or `skipped` (another job of its schedule had not
    ended), and `dispatched` again between two attempts. `cancelled`: a promise that it never gets there.
    `cancel_requested`: it is there, or may be. `parked`: in the dispatch dead-letter queue, with the reason.
    `unrecorded`: a look-up found no record. By the direct route, it went straight to SQS, or was never scheduled; by
    the table's, it is on its way there, or was never scheduled. To be sure, schedule it again under the same id or
    key."""
    moved_from: NotRequired[str]
    """The id that was given, if the job was moved since: `id` is the one that it has now."""
    kind: NotRequired[str]
    """Which handler of the queue runs it: while it waits, or as workers noted it."""
    key: NotRequired[str]
    """The name under which it was scheduled, if by the table: until its retention is over."""
    schedule: NotRequired[str]
    """The schedule whose run it is. Of runs on demand, only the answer that made them has it."""
    scheduled_for: NotRequired[Instant]
    """For which instant that schedule made it, in UTC."""


class ScheduledAnswer(JobAnswer):
    """The job that a call scheduled, or that has its key."""

    created: bool
    """This call made it; false where it has the key already, or an earlier attempt of the call made it."""


class UploadAnswer(TypedDict):
    """How to send one payload to S3, of which a job is to be made."""

    upload: str
    """The upload's id, to schedule a job with in place of its payload, within a day."""
    url: str
    """Where to send the payload; for its owner alone."""
    method: Annotated[str, Field(json_schema_extra={"enum": [METHOD]})]
    """How to."""
    headers: dict[str, str]
    """The headers to send with it, exactly."""
    expires: Instant
    """Until when it must be sent, in UTC."""


class Refused(TypedDict):
    """What is wrong with one of many."""

    error: Problem
    """As the answer to this one alone would be."""


class Results(TypedDict):
    """For each job of the request, in order, the job or what is wrong with it."""

    jobs: list[JobAnswer | Refused]
    """One for each, in order."""


class ScheduledResults(TypedDict):
    """For each job of the request, in order, the job or what is wrong with it."""

    jobs: list[ScheduledAnswer | Refused]
    """One for each, in order."""


class PayloadPlace(TypedDict):
    """Where a payload is kept in S3."""

    bucket: str
    """The bucket."""
    key: str
    """The object's key."""
    bytes: Positive
    """Its size in bytes."""


@with_config(ConfigDict(json_schema_extra={"oneOf": [*_PAYLOADS, {"not": {"anyOf": _PAYLOADS}}]}))
class JobWithPayload(JobAnswer):
    """A job with its payload and its attributes; without them unless it waits in the table."""

    payload: NotRequired[Any]
    """The payload, if it is JSON."""
    payload_text: NotRequired[str]
    """The payload as text, if it is no JSON."""
    payload_at: NotRequired[PayloadPlace]
    """Where the payload is kept, if it is large."""
    tenant: NotRequired[str]
    """Whose job it is."""
    priority: NotRequired[PriorityLevel]
    """1 is the most urgent."""
    traceparent: NotRequired[str]
    """The W3C trace context in which it was scheduled."""


class Page(TypedDict):
    """A page of jobs, in order. It may hold fewer than `limit`, even none: `next` goes on."""

    jobs: list[JobWithPayload]
    """The jobs of this page."""
    next: str | None
    """Where the next page begins; null on the last one."""
    unreadable: NotRequired[Positive]
    """How many rows of this page cannot be read and are left out."""


class Controls(TypedDict):
    """How a queue's workers are controlled."""

    paused: bool
    """Its workers begin no job until it is resumed."""
    rate: str | None
    """How many jobs its workers begin in all, in a second, a minute or an hour; null: no limit."""


class ControlAnswer(Controls):
    """A queue, and what holds for its workers."""

    queue: str
    """The queue's name in queues.yaml."""


class QueueAnswer(TypedDict):
    """A queue and its settings, as far as callers need them.

    The id of a job has a partition that takes jobs, and route `d` if it is due within the direct horizon, or else `t`.
    """

    queue: str
    """The queue's name in queues.yaml."""
    partitions: Positive
    """Slices of the queue, each with its own tick."""
    retention: Positive
    """Seconds after its due time that a job is kept and may still be sent."""
    precise: bool
    """Jobs come up to 1.25 s early: its workers wait that out."""
    priorities: PriorityLevel
    """Its levels, each an SQS queue of its own."""
    track: bool
    """Look-ups have what its workers noted of a job."""
    taking: Count | None
    """How many of its partitions take jobs now, those from 0 on: none before it is deployed; null while unknown."""
    direct_horizon: Positive
    """Seconds up to which a due job goes straight to its queue."""


class Queues(TypedDict):
    """All queues of the deployment."""

    queues: list[QueueAnswer]
    """The queues, each with its settings."""


class DepthAnswer(TypedDict):
    """How many jobs are on SQS."""

    waiting: Count
    """Jobs in the queue, for workers to receive."""
    in_flight: Count
    """Jobs that workers have received and not deleted."""
    delayed: Count
    """Jobs in the queue that are due in a moment."""


class LevelAnswer(DepthAnswer):
    """How many jobs of one priority are on SQS."""

    priority: PriorityLevel
    """1 is the most urgent."""


class OverviewAnswer(QueueAnswer, DepthAnswer, Controls):
    """A queue, its settings, and how many of its jobs are where. What SQS counts is its own estimate."""

    scheduled: Count
    """Jobs in the table, counted up to 1,000."""
    more_scheduled: bool
    """There may be more of them."""
    next_due: Instant | None
    """When the earliest of them is due; null without any."""
    fence_age: Annotated[float, Field(ge=0)] | None
    """Seconds since the oldest fence of its partitions was raised, about a minute if all is well; null while one of
    them has none, for want of a tick."""
    levels: NotRequired[list[LevelAnswer]]
    """The same of each level, if it has several."""
    dead: Count
    """Jobs in its dead-letter queue."""


def job_answer(id: JobId, status: Status) -> JobWithPayload:
    """Return a job, while it waits in the table with its payload, or where that is kept."""
    return cast("JobWithPayload", job_json(Job.of_status(id, status)))


def scheduled_answer(result: SubmitResult | DuelineError, status: JobStatus) -> ScheduledAnswer:
    """Return the job that a call scheduled, and whether that is new."""
    is_new = isinstance(result, SubmitResult) and result.is_new and not result.is_repeat
    return cast("ScheduledAnswer", job_json(Job.of_status(*status, created=is_new)))


def scheduled_or_refused(
    result: SubmitResult | DuelineError, status: JobStatus | DuelineError
) -> ScheduledAnswer | Refused:
    return {"error": problem(status)} if isinstance(status, DuelineError) else scheduled_answer(result, status)


def cancel_answer(result: CancelResult) -> JobAnswer:
    return job_answer(result.id, Status(state=result.state, moved_from=result.moved_from))


def cancelled_or_refused(result: CancelResult | DuelineError) -> JobAnswer | Refused:
    return {"error": problem(result)} if isinstance(result, DuelineError) else cancel_answer(result)


def upload_answer(started: StartedUpload) -> UploadAnswer:
    """Return an upload's id, and how to send it."""
    return {
        "upload": str(started.upload),
        "url": started.url,
        "method": METHOD,
        "headers": dict(started.headers),
        "expires": instant.text(started.expires),
    }


def page_of_jobs(page: JobPage) -> Page:
    """Return a page of scheduled jobs with their payloads, and where the next one begins, which may be nowhere."""
    return _page(map(ScheduledJob.of_job, page.jobs), page.after, page.unreadable)


def page_of_tracked(page: TrackedPage) -> Page:
    """Return a page of jobs as workers recorded them, and where the next one begins."""
    return _page((Job.of_status(*each) for each in page.jobs), page.before, page.unreadable)


def _page(jobs: Iterable[Job], place: str | None, unreadable: int) -> Page:
    answer = {"jobs": list(map(job_json, jobs)), "next": None if place is None else place_text(place)}
    return cast("Page", {**answer, "unreadable": unreadable} if unreadable else answer)


def queue_answer(queue: QueueSettings, *, taking: int | None, direct_horizon: int) -> QueueAnswer:
    answer = {"queue": queue.name, **queue.to_json(), "taking": taking, "direct_horizon": direct_horizon}
    return cast("QueueAnswer", answer)


def queues_answer(registry: Registry, *, direct_horizon: int) -> Queues:
    taking = registry.taking_counts()
    answers = [
        queue_answer(queue, taking=taking.get(name), direct_horizon=direct_horizon)
        for name, queue in registry.queues.items()
    ]
    return {"queues": answers}


def overview_answer(
    queue: QueueSettings, overview: Overview, *, taking: int | None, direct_horizon: int
) -> OverviewAnswer:
    """Return a queue with its counts, and those of each of its levels, if it has several."""
    levels = [{"priority": number, **asdict(depth)} for number, depth in enumerate(overview.levels, start=1)]
    answer = {
        **queue_answer(queue, taking=taking, direct_horizon=direct_horizon),
        "scheduled": overview.scheduled,
        "more_scheduled": overview.more_scheduled,
        "next_due": None if overview.next_due is None else instant.text(overview.next_due),
        "fence_age": overview.fence_age,
        **asdict(overview.depth),
        "dead": overview.dead,
        **controls(overview.control),
    }
    return cast("OverviewAnswer", answer | ({"levels": levels} if len(levels) > 1 else {}))


def control_answer(queue: str, control: Control) -> ControlAnswer:
    return {"queue": queue, **controls(control)}


def controls(control: Control) -> Controls:
    return {"paused": control.paused, "rate": None if control.rate is None else str(control.rate)}
