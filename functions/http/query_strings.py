"""The query strings of requests, validated."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dueline.errors import InvalidJob
from dueline.lookup.listing import FAR_END, MOST_JOBS, Span, read_place
from dueline.model import instant
from functions.http.bodies import describe_errors
from functions.http.forms import At, Key, whole_number


def _read_place(text: str) -> str:
    try:
        return read_place(text)
    except ValueError:
        raise ValueError("must be the `next` of an earlier answer, as it was") from None


class JobsQuery(BaseModel):
    """What jobs to list: due from `from` to just before `to`, `limit` at most, behind the page that gave `next`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    start: At | None = Field(
        default=None,
        alias="from",
        description="Jobs due at this instant or later, with a zone. Without it: from now on.",
        examples=["2027-01-04T00:00:00Z"],
    )
    end: At = Field(
        default=FAR_END,
        alias="to",
        description="Jobs due before this instant, with a zone. Without it: all.",
        examples=["2027-01-05T00:00:00Z"],
    )
    limit: Annotated[int, whole_number(most=MOST_JOBS)] = Field(
        default=20, ge=1, le=MOST_JOBS, description="The most jobs to tell of.", examples=[50]
    )
    after: Annotated[str, BeforeValidator(_read_place)] = Field(
        default="",
        alias="next",
        json_schema_extra={"minLength": 1},
        description="Go on behind an earlier page: its `next`, as it was.",
        examples=["IjIwMjctMDEtMDRUMDg6MDA6MDAuMDAwWiI"],
    )
    key: Key = Field(
        default="",
        description="Only the job that was scheduled under this idempotency key, wherever it is now, without its"
        " payload; then nothing else counts.",
        examples=["welcome-ann"],
    )


def read_span(query: Mapping[str, Any], *, now: datetime) -> Span:
    """Return which jobs a query string asks to list.

    Raises InvalidJob, naming the field, its value and what is allowed.
    """
    try:
        asked = JobsQuery.model_validate(query)
    except ValidationError as error:
        raise InvalidJob(describe_errors(error, JobsQuery)) from None
    # What goes on begins behind `next`: the present has moved since.
    start = asked.start or (instant.EPOCH if asked.after else now)
    for name, at in (("from", start), ("to", asked.end)):
        if not instant.EPOCH <= at <= FAR_END:
            allowed = f"from {instant.text(instant.EPOCH)} to {instant.text(FAR_END)}"
            raise InvalidJob(f"{name} is {at.isoformat()}: it must be {allowed}")
    if asked.end < start:
        raise InvalidJob(f"to is {instant.text(asked.end)}: it must not be before from, {instant.text(start)}")
    return Span(start=start, end=asked.end, after=asked.after, limit=asked.limit)
