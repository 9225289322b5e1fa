"""What the API answers when it refuses, a status each, and what API Gateway answers in its place."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from dueline.errors import (
    AlreadyFinished,
    DuelineError,
    IdReused,
    InvalidJob,
    InvalidSchedule,
    JobNotFound,
    KeyReused,
    NotYet,
    PayloadTooLarge,
    QueueNotFound,
    RunOfSchedule,
    ScheduleChanged,
    ScheduleNotFound,
    Throttled,
    TooManyChanges,
    TooManySchedules,
    Unavailable,
)
from functions.http import problems
from functions.http.openapi.examples import ID, MOVED

Json = dict[str, Any]
# API Gateway refuses what it refuses for whichever operation.
EVERYWHERE = (
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_MEANS = {
    HTTPStatus.BAD_REQUEST: "A field is wrong: the detail names it, the value got and what is allowed.",
    HTTPStatus.FORBIDDEN: "No signature, or the caller's policies do not allow this queue. API Gateway's own.",
    HTTPStatus.NOT_FOUND: "No such queue, no such job (a malformed id, another queue's, one of a partition that never"
    " was, one past its retention), no such schedule, or no such route.",
    HTTPStatus.CONFLICT: "The job has left for its queue, was cancelled, or was moved: `id` is what took its place."
    " There is no second job. Or it is a run of a schedule, which cannot be moved. Or the id that was given is of a job"
    " with another payload, tenant or priority. Or the queue has as many schedules as it may have, or the schedule was"
    " changed too often within its jitter.",
    HTTPStatus.PRECONDITION_FAILED: "The schedule is not as it was when the `ETag` of `If-Match` was told. Or it is"
    " there, and was only to be created.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "A payload over 256 KiB; or a request over 6 MB, which is API Gateway's own.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "The idempotency key belongs to a job with another payload, or to a backfill of"
    " other instants.",
    HTTPStatus.TOO_MANY_REQUESTS: "AWS asked to slow down; or `api_rate` is reached, which is API Gateway's own.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The function failed. API Gateway's own.",
    HTTPStatus.SERVICE_UNAVAILABLE: "AWS failed, or its answer was lost: try again, with the same id or key. The job"
    " may be scheduled all the same; `id` names it then. Or `not_yet`: what is asked for is not there yet, says the"
    " detail.",
}
# What API Gateway says of a request that it does not pass on, or that is not answered.
_OF_THE_GATEWAY = {
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "Not Found",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Request Entity Too Large",
    HTTPStatus.TOO_MANY_REQUESTS: "Too Many Requests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Internal Server Error",
    HTTPStatus.SERVICE_UNAVAILABLE: "Service Unavailable",
}
_WAITED = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class GatewayRefusal(TypedDict):
    """What API Gateway says itself."""

    message: Annotated[str, Field(description="The reason, in its words.", examples=["Forbidden"])]


def refusal(status: HTTPStatus, *, ref: Callable[[Any], Json]) -> Json:
    """Return the answer of a status; `ref` returns where a type's schema is."""
    content = {"application/problem+json": _problem(status, ref)} if problems.codes(status) else {}
    if status in _OF_THE_GATEWAY:
        message = {"message": _OF_THE_GATEWAY[status]}
        content["application/json"] = {"schema": ref(GatewayRefusal), "examples": {"gateway": {"value": message}}}
    headers = {"headers": {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}} if status in _WAITED else {}
    return {"description": _MEANS[status], **headers, "content": content}


def retry_after() -> Json:
    return {
        "description": "Seconds to wait before trying again. API Gateway's own answers have none.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 1,
    }


def _problem(status: HTTPStatus, ref: Callable[[Any], Json]) -> Json:
    narrowed = {"status": {"const": status.value}, "code": {"enum": problems.codes(status)}}
    schema = {**ref(problems.Problem), "properties": narrowed}
    return {"schema": schema, "examples": {problem["code"]: {"value": problem} for problem in _examples(status)}}


def _examples(status: HTTPStatus) -> list[problems.Problem]:
    shown = [problems.problem(error) for error in [*_errors(), *_of_schedules()]] + [
        problems.route_problem("/queue/emails")
    ]
    return [problem for problem in shown if problem["status"] == status]


def _errors() -> list[DuelineError]:
    moved = AlreadyFinished(f"job {ID} was moved to {MOVED}: it can be moved no more")
    moved.job_id = MOVED
    lost = Unavailable("the connection was lost")
    lost.job_id = ID
    return [
        InvalidJob("delay is -1: it must be from 0 to 315619200 seconds (10 years)"),
        QueueNotFound("there is no queue 'email': it is not in queues.yaml"),
        JobNotFound("no job has the id '7': it is not of the form of an id"),
        moved,
        PayloadTooLarge("payload has 262145 bytes: at most 262144 are allowed"),
        IdReused(f"id is {ID!r}: it belongs to a job with another payload, tenant or priority"),
        KeyReused(f"key is 'welcome-ann': it was used for job {ID}, which has another payload"),
        Throttled("slow down"),
        lost,
        NotYet(
            f"job {ID} is not in the table: it may still be on its way there, then try again in a moment; or no"
            " such job was ever scheduled"
        ),
    ]


def _of_schedules() -> list[DuelineError]:
    return [
        InvalidSchedule("zone is 'Europe/Berlim': it must be the name of an IANA time zone"),
        ScheduleNotFound("queue 'emails' has no schedule 'digest'"),
        TooManySchedules("queue 'emails' has 10000 schedules: it may have no more"),
        TooManyChanges(
            "schedule emails/digest was changed 20 times since 2027-01-03T18:40:00.000Z, and its jitter of 3600 s puts"
            " a run of before off to 2027-01-03T19:20:00.000Z: change it again from then on; a pause or delete goes at"
            " once"
        ),
        RunOfSchedule(
            f"job {ID} is a run of schedule emails/digest: it cannot be rescheduled; cancel it, or run the schedule now"
        ),
        ScheduleChanged("schedule 'digest' was changed since it was read"),
    ]
