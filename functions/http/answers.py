"""What is told of jobs and queues, as the bodies of HTTP answers.

Their types are what docs/openapi.json is written from: a field is a line there and a line where it is told.
"""

from typing import Annotated, Any, NotRequired, cast

from pydantic import ConfigDict, Field, with_config

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.client.answers import payload_fields
from dueline.config.registry import settings_of
from dueline.lookup.listing import Listed, place_text
from dueline.lookup.outcome import Outcome
from dueline.lookup.overview import MOST_COUNTED, Overview
from dueline.model import instant
from dueline.model.job import MAX_PRIORITY, JobId, Route, State
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Depth
from dueline.protocol.uploads import METHOD, Begun
from functions.http.control_answers import Controls, QueueName, told_of_control
from functions.http.outcome_answer import OutcomeAnswer, of_outcome
from functions.http.problems import Problem

Id = Annotated[
    str,
    Field(
        description="The job's id, which tells where to find it.",
        examples=["emails.0.t.1799049600000.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"],
    ),
]
Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2027-01-04T08:00:00.000Z"])]
Count = Annotated[int, Field(ge=0, examples=[3])]
_ROUTES = [route.name.lower() for route in Route]
_TOLD_PAYLOADS = ("payload", "payload_text", "payload_at")
_STATES = [state.value for state in State]


class _KnownJob(TypedDict):
    id: Id
    queue: QueueName
    due: Annotated[Instant, Field(description="When it is due, in UTC, rounded up to a millisecond.")]
    route: Annotated[
        str,
        Field(
            json_schema_extra={"enum": _ROUTES},
            description="How it gets to its queue: `direct`, or by the `table` if it is due later.",
            examples=["table"],
        ),
    ]
    state: Annotated[
        str,
        Field(
            json_schema_extra={"enum": _STATES},
            description="`accepted`: on its way to the table. `scheduled`: there. `dispatched`: handed to its queue;"
            " then, if that tracks, `running`, `succeeded` or `failed`, and `dispatched` again between two attempts."
            " `cancelled`: a promise that it never gets there. `cancel_requested`: it is there, or may be."
            " `parked`: in the dispatch dead-letter queue, with the reason.",
            examples=["accepted"],
        ),
    ]
    moved_to: NotRequired[Annotated[Id, Field(description="The id of the job that took its place.")]]


class JobAnswer(_KnownJob, OutcomeAnswer):
    """A job, and how far it has come."""


class UploadAnswer(TypedDict):
    """How to send one payload to S3, of which a job is to be made."""

    upload: Annotated[
        str,
        Field(
            description="The upload's id, to schedule a job with in place of its payload, within a day.",
            examples=[f"0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c.6000000.{'0' * 64}"],
        ),
    ]
    url: Annotated[
        str,
        Field(description="Where to send the payload; for its owner alone.", examples=["https://…s3…amazonaws.com/…"]),
    ]
    method: Annotated[str, Field(json_schema_extra={"enum": [METHOD]}, description="How to.", examples=[METHOD])]
    headers: Annotated[
        dict[str, str],
        Field(description="The headers to send with it, exactly.", examples=[{"content-length": "6000000"}]),
    ]
    expires: Annotated[Instant, Field(description="Until when it must be sent, in UTC.")]


class PayloadPlace(TypedDict):
    """Where a payload is kept in S3."""

    bucket: Annotated[str, Field(description="The bucket.", examples=["dueline-payloads-123456789012-eu-west-1"])]
    key: Annotated[
        str, Field(description="The object's key.", examples=["0032/emails/0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"])
    ]
    bytes: Annotated[int, Field(ge=1, description="Its size in bytes.", examples=[6_000_000])]


class _Payload(TypedDict):
    payload: NotRequired[Annotated[Any, Field(description="The payload, if it is JSON.", examples=[{"to": "ann"}])]]
    payload_text: NotRequired[
        Annotated[str, Field(description="The payload as text, if it is no JSON.", examples=["no JSON"])]
    ]
    payload_at: NotRequired[Annotated[PayloadPlace, Field(description="Where the payload is kept, if it is large.")]]


@with_config(ConfigDict(json_schema_extra={"oneOf": [{"required": [each]} for each in _TOLD_PAYLOADS]}))
class ListedJob(JobAnswer, _Payload):
    """A job that is scheduled, with its payload."""


class Page(TypedDict):
    """A page of what is scheduled, in due order. It may hold fewer jobs than asked for, even none: `next` goes on."""

    jobs: Annotated[list[ListedJob], Field(description="The jobs of this page.")]
    next: Annotated[
        str | None,
        Field(
            description="Where the next page begins; null on the last one.",
            examples=["IjIwMjctMDEtMDRUMDg6MDA6MDAuMDAwWiI"],
        ),
    ]


class Refused(TypedDict):
    """What is wrong with one of many."""

    error: Annotated[Problem, Field(description="As it would be told of this one alone.")]


class Results(TypedDict):
    """For each of what was asked for, in order, the job or what is wrong with it."""

    jobs: Annotated[list[JobAnswer | Refused], Field(description="One for each, in order.")]


class QueueAnswer(TypedDict):
    """A queue and its settings, as far as callers need them."""

    queue: QueueName
    partitions: Annotated[int, Field(ge=1, description="Slices of the queue, each with its own tick.", examples=[1])]
    retention: Annotated[
        int,
        Field(
            ge=1, description="Seconds after its due time that a job is kept and may still be sent.", examples=[604800]
        ),
    ]
    precise: Annotated[
        bool, Field(description="Jobs come up to 1.25 s early: its workers wait that out.", examples=[False])
    ]
    priorities: Annotated[
        int, Field(ge=1, le=MAX_PRIORITY, description="Its levels, each an SQS queue of its own.", examples=[1])
    ]
    track: Annotated[bool, Field(description="Look-ups tell what its workers noted of a job.", examples=[False])]


class Queues(TypedDict):
    """All queues of the deployment."""

    queues: Annotated[list[QueueAnswer], Field(description="The queues, each with its settings.")]


class DepthAnswer(TypedDict):
    """How many jobs are on SQS."""

    waiting: Annotated[Count, Field(description="Jobs in the queue, for workers to receive.")]
    in_flight: Annotated[Count, Field(description="Jobs that workers have received and not deleted.")]
    delayed: Annotated[Count, Field(description="Jobs in the queue that are due in a moment.")]


class LevelAnswer(DepthAnswer):
    """How many jobs of one priority are on SQS."""

    priority: Annotated[int, Field(ge=1, le=MAX_PRIORITY, description="1 is the most urgent.", examples=[1])]


class OverviewAnswer(QueueAnswer, DepthAnswer, Controls):
    """A queue, its settings, and how many of its jobs are where. What SQS counts is its own estimate."""

    scheduled: Annotated[Count, Field(description=f"Jobs in the table, counted up to {MOST_COUNTED:,}.")]
    more_scheduled: Annotated[bool, Field(description="There may be more of them.", examples=[False])]
    next_due: Annotated[Instant | None, Field(description="When the earliest of them is due; null without any.")]
    fence_age: Annotated[
        float | None,
        Field(
            ge=0,
            description="Seconds since the oldest fence of its partitions was raised, about a minute if all is well;"
            " null while one of them has none, for want of a tick.",
            examples=[42.5],
        ),
    ]
    levels: NotRequired[Annotated[list[LevelAnswer], Field(description="The same of each level, if it has several.")]]
    dead: Annotated[Count, Field(description="Jobs in its dead-letter queue.")]


def of_job(id: JobId, state: State, *, moved_to: JobId | None = None, outcome: Outcome | None = None) -> JobAnswer:
    told = JobAnswer(
        id=str(id), queue=id.queue, due=instant.text(id.due), route=id.route.name.lower(), state=state.value
    )
    moved = {} if moved_to is None else {"moved_to": str(moved_to)}
    return cast(JobAnswer, {**told, **moved, **({} if outcome is None else of_outcome(outcome))})


def of_upload(begun: Begun) -> UploadAnswer:
    """Return an upload's id, and how to send it."""
    return {
        "upload": str(begun.upload),
        "url": begun.url,
        "method": METHOD,
        "headers": dict(begun.headers),
        "expires": instant.text(begun.expires),
    }


def of_page(listed: Listed) -> Page:
    """Return a page of scheduled jobs with their payloads, and where the next one begins, which may be nowhere."""
    jobs = [cast(ListedJob, {**of_job(job.id, State.SCHEDULED), **payload_fields(job)}) for job in listed.jobs]
    return {"jobs": jobs, "next": None if listed.after is None else place_text(listed.after)}


def of_queue(queue: QueueSettings) -> QueueAnswer:
    return cast(QueueAnswer, {"queue": queue.name, **settings_of(queue)})


def of_overview(queue: QueueSettings, told: Overview) -> OverviewAnswer:
    """Return what is told of a queue; of each of its levels, if it has several."""
    levels = [LevelAnswer(priority=number, **_depth(depth)) for number, depth in enumerate(told.levels, start=1)]
    answer = {
        **of_queue(queue),
        "scheduled": told.scheduled,
        "more_scheduled": told.more_scheduled,
        "next_due": None if told.next_due is None else instant.text(told.next_due),
        "fence_age": told.fence_age,
        **_depth(told.depth),
        "dead": told.dead,
        **told_of_control(told.control),
    }
    return cast(OverviewAnswer, answer | ({"levels": levels} if len(levels) > 1 else {}))


def _depth(depth: Depth) -> DepthAnswer:
    return {"waiting": depth.waiting, "in_flight": depth.in_flight, "delayed": depth.delayed}
