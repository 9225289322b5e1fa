"""The bodies of HTTP answers about jobs.

docs/openapi.json is written from their types: a field is a line in its type, and a line where it is filled in.
"""

from typing import Annotated, NotRequired, cast

from pydantic import Field
from pydantic.config import JsonDict

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.errors import DuelineError
from dueline.lookup.outcome import MAX_ERROR_CHARACTERS, Outcome
from dueline.lookup.status import Status
from dueline.lookup.submitted import JobStatus
from dueline.model import instant
from dueline.model.job import JobId, Route, State
from dueline.protocol.cancel import Cancelled
from dueline.protocol.uploads import METHOD, Begun
from functions.http.problems import Problem, problem

Id = Annotated[
    str,
    Field(
        description="The job's id, which tells where to find it.",
        examples=["emails.0.t.1799049600000.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"],
    ),
]
QueueName = Annotated[str, Field(description="The queue's name in queues.yaml.", examples=["emails"])]
_DATE_TIME: JsonDict = {"format": "date-time"}
Instant = Annotated[str, Field(json_schema_extra=_DATE_TIME, examples=["2027-01-04T08:00:00.000Z"])]
_ROUTES = [route.name.lower() for route in Route]
_STATES = [state.value for state in State]


class OutcomeAnswer(TypedDict):
    """What workers noted of a job: nothing before its first attempt."""

    attempts: NotRequired[Annotated[int, Field(ge=1, description="How often it was tried.", examples=[2])]]
    started: NotRequired[
        Annotated[
            str,
            Field(
                json_schema_extra=_DATE_TIME,
                description="When the last attempt began, in UTC.",
                examples=["2027-01-04T08:00:00.417Z"],
            ),
        ]
    ]
    ended: NotRequired[
        Annotated[
            str,
            Field(
                json_schema_extra=_DATE_TIME,
                description="When it ended, in UTC; not of one that runs.",
                examples=["2027-01-04T08:00:01.102Z"],
            ),
        ]
    ]
    error: NotRequired[
        Annotated[
            str,
            Field(
                max_length=MAX_ERROR_CHARACTERS,
                description="Why it failed: the type of an error, or a short reason.",
                examples=["TimeoutError"],
            ),
        ]
    ]


class _JobFields(TypedDict):
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
            " then, if that tracks, `running`, `succeeded`, `failed` or `skipped` (another job of its schedule had not"
            " ended), and `dispatched` again between two attempts."
            " `cancelled`: a promise that it never gets there. `cancel_requested`: it is there, or may be."
            " `parked`: in the dispatch dead-letter queue, with the reason.",
            examples=["accepted"],
        ),
    ]
    moved_to: NotRequired[Annotated[Id, Field(description="The id of the job that took its place.")]]
    schedule: NotRequired[
        Annotated[
            str,
            Field(
                description="The schedule whose run it is. Runs on demand are told by the answer that made them alone.",
                examples=["digest"],
            ),
        ]
    ]
    nominal: NotRequired[Annotated[Instant, Field(description="For which instant that schedule made it, in UTC.")]]


class JobAnswer(_JobFields, OutcomeAnswer):
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


class Refused(TypedDict):
    """What is wrong with one of many."""

    error: Annotated[Problem, Field(description="As it would be told of this one alone.")]


class Results(TypedDict):
    """For each of what was asked for, in order, the job or what is wrong with it."""

    jobs: Annotated[list[JobAnswer | Refused], Field(description="One for each, in order.")]


def status_answer(id: JobId, status: Status) -> JobAnswer:
    answer = job_answer(id, status.state, moved_to=status.moved_to, outcome=status.outcome)
    return cast(JobAnswer, {**answer, **_origin(status)})


def job_answer(id: JobId, state: State, *, moved_to: JobId | None = None, outcome: Outcome | None = None) -> JobAnswer:
    answer = JobAnswer(
        id=str(id), queue=id.queue, due=instant.text(id.due), route=id.route.name.lower(), state=state.value
    )
    moved = {} if moved_to is None else {"moved_to": str(moved_to)}
    return cast(JobAnswer, {**answer, **moved, **({} if outcome is None else outcome_answer(outcome))})


def _origin(of: Status) -> dict[str, str]:
    """Return whose run a job is, and for when, where it is one of a schedule."""
    if of.schedule is None or of.nominal is None:
        return {}
    return {"schedule": of.schedule, "nominal": instant.text(of.nominal)}


def cancelled_or_refused(result: Cancelled | DuelineError) -> JobAnswer | Refused:
    return _refused(result) if isinstance(result, DuelineError) else job_answer(result.id, result.state)


def status_or_refused(found: JobStatus | DuelineError) -> JobAnswer | Refused:
    return _refused(found) if isinstance(found, DuelineError) else status_answer(*found)


def _refused(error: DuelineError) -> Refused:
    return {"error": problem(error)}


def upload_answer(begun: Begun) -> UploadAnswer:
    """Return an upload's id, and how to send it."""
    return {
        "upload": str(begun.upload),
        "url": begun.url,
        "method": METHOD,
        "headers": dict(begun.headers),
        "expires": instant.text(begun.expires),
    }


def outcome_answer(outcome: Outcome) -> OutcomeAnswer:
    answer = OutcomeAnswer(attempts=outcome.attempts, started=instant.text(outcome.started))
    if outcome.ended is not None:
        answer["ended"] = instant.text(outcome.ended)
    if outcome.error is not None:
        answer["error"] = outcome.error
    return answer
