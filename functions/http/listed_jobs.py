"""The bodies of HTTP answers that list jobs; docs/openapi.json is written from their types."""

from typing import Annotated, Any, NotRequired, cast

from pydantic import ConfigDict, Field, JsonValue, with_config

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.client.listed import attributes, payload_fields
from dueline.lookup.listing import Listed, place_text
from dueline.lookup.status import Status
from dueline.model import instant
from dueline.model.job import MAX_PRIORITY, Job, JobId, State
from functions.http.job_answers import JobAnswer, job_answer, status_answer

_PAYLOADS: list[JsonValue] = [{"required": [field]} for field in ("payload", "payload_text", "payload_at")]


class PayloadPlace(TypedDict):
    """Where a payload is kept in S3."""

    bucket: Annotated[str, Field(description="The bucket.", examples=["dueline-payloads-123456789012-eu-west-1"])]
    key: Annotated[
        str, Field(description="The object's key.", examples=["0032/emails/0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"])
    ]
    bytes: Annotated[int, Field(ge=1, description="Its size in bytes.", examples=[6_000_000])]


class _PayloadFields(TypedDict):
    payload: NotRequired[Annotated[Any, Field(description="The payload, if it is JSON.", examples=[{"to": "ann"}])]]
    payload_text: NotRequired[
        Annotated[str, Field(description="The payload as text, if it is no JSON.", examples=["no JSON"])]
    ]
    payload_at: NotRequired[Annotated[PayloadPlace, Field(description="Where the payload is kept, if it is large.")]]


class _Attributes(TypedDict):
    tenant: NotRequired[Annotated[str, Field(description="Whose job it is.", examples=["customer-7"])]]
    priority: NotRequired[
        Annotated[int, Field(ge=1, le=MAX_PRIORITY, description="1 is the most urgent.", examples=[1])]
    ]
    traceparent: NotRequired[
        Annotated[
            str,
            Field(
                description="The W3C trace context in which it was scheduled.",
                examples=["00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"],
            ),
        ]
    ]


@with_config(ConfigDict(json_schema_extra={"oneOf": [*_PAYLOADS, {"not": {"anyOf": _PAYLOADS}}]}))
class ListedJob(JobAnswer, _Attributes, _PayloadFields):
    """A job with its payload and its attributes; without them if it was asked for by its key."""


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


def page_of_jobs(listed: Listed) -> Page:
    """Return a page of scheduled jobs with their payloads, and where the next one begins, which may be nowhere."""
    jobs = [cast(ListedJob, {**job_answer(job.id, State.SCHEDULED), **_told(job)}) for job in listed.jobs]
    return {"jobs": jobs, "next": None if listed.after is None else place_text(listed.after)}


def page_of_one(id: JobId, status: Status) -> Page:
    return {"jobs": [cast(ListedJob, status_answer(id, status))], "next": None}


def _told(job: Job) -> dict[str, Any]:
    nominal = {} if job.nominal is None else {"nominal": instant.text(job.nominal)}
    return attributes(job) | nominal | payload_fields(job)
