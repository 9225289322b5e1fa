"""The forms of requests' bodies: what docs/openapi.json is written from, and bodies are validated by."""

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation
from pydantic.config import JsonDict

from dueline.model import instant
from dueline.model.job import FORM, MAX_OFFLOADED_BYTES, MAX_PRIORITY, MAX_TENANT_CHARACTERS
from dueline.model.request import FURTHEST
from dueline.protocol.keys import MAX_CHARACTERS

MAX_JOBS = 500
_LOST_PLUS = re.compile(r"T\S+ [0-9]{2}:?[0-9]{2}$")
_STRICT = ConfigDict(extra="forbid", strict=True)


def instant_of(at: Any) -> datetime:
    """Return the instant that a text in ISO 8601 names. Raises ValueError, saying what is allowed."""
    try:
        return instant.parse(at)
    except (TypeError, ValueError):
        must = "must be a text in ISO 8601 with a time zone, such as 2026-01-01T09:00:00Z"
        # A + in a query string is a space.
        hint = "; in a URL, + is written %2B" if isinstance(at, str) and _LOST_PLUS.search(at) else ""
        raise ValueError(must + hint) from None


def rate_text(rate: Any) -> str:
    """Return a text, which the core reads as a rate. Raises ValueError for anything else, saying what is allowed."""
    if not isinstance(rate, str):
        raise ValueError("must be a text such as 50/s, 90/m or 200/h, or null for no limit")
    return rate


def integral(number: Any) -> Any:
    """Return a number without a fraction as an int, as JSON has but one kind of number: 615.0 is 615."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def whole_number(*, most: int) -> BeforeValidator:
    """Return what reads a whole number from 1 on of a query string. It raises ValueError, saying what is allowed."""

    def read(number: str) -> int:
        if not (number.isascii() and number.isdecimal() and len(number) <= 9 and 1 <= int(number) <= most):
            raise ValueError(f"must be a whole number from 1 to {most}")
        return int(number)

    return BeforeValidator(read)


# What the core checks is only told here (`json_schema_extra`): its own errors say more than pydantic's.
At = Annotated[datetime, BeforeValidator(instant_of)]
Delay = Annotated[float, Field(json_schema_extra={"minimum": 0, "maximum": FURTHEST.total_seconds()})]
Key = Annotated[str, Field(json_schema_extra={"pattern": f"^[ -~]{{1,{MAX_CHARACTERS}}}$"})]
Id = Annotated[str, Field(json_schema_extra={"pattern": f"^{FORM}$"})]
Tenant = Annotated[str, Field(json_schema_extra={"pattern": f"^[!-~]{{1,{MAX_TENANT_CHARACTERS}}}$"})]
Integer = Annotated[int, BeforeValidator(integral)]
Priority = Annotated[Integer, Field(json_schema_extra={"minimum": 1, "maximum": MAX_PRIORITY})]
RateText = Annotated[
    str, BeforeValidator(rate_text), Field(json_schema_extra={"pattern": "^(0?[0-9]{1,5}|100000)/[smh]$"})
]
_WITH_PAYLOAD: JsonDict = {"required": ["payload"]}
_WITH_UPLOAD: JsonDict = {"required": ["upload"]}
_WITH_AT: JsonDict = {"required": ["at"], "properties": {"at": {"type": "string"}}}
_WITH_DELAY: JsonDict = {"required": ["delay"], "properties": {"delay": {"type": "number"}}}
_WITH_ID: JsonDict = {"required": ["id"], "properties": {"id": {"type": "string"}}}
_WITH_KEY: JsonDict = {"required": ["key"], "properties": {"key": {"type": "string"}}}
_BESIDE_AN_ID: JsonDict = {"anyOf": [_WITH_AT, _WITH_DELAY, _WITH_KEY]}
_AT_ODDS: JsonDict = {"anyOf": [{"allOf": [_WITH_AT, _WITH_DELAY]}, {"allOf": [_WITH_ID, _BESIDE_AN_ID]}]}


class JobBody(BaseModel):
    """A job as it is posted: due `at` an instant or after a `delay`, not both; without either it is due now.

    It has a `payload`, or an `upload` in its place. An `id` takes the place of `at`, `delay` and `key`.
    """

    model_config = _STRICT | ConfigDict(json_schema_extra={"not": _AT_ODDS, "oneOf": [_WITH_PAYLOAD, _WITH_UPLOAD]})

    payload: Any = Field(
        default=None,
        description="Any JSON, 10 MiB at most: the body of the message that the worker gets, or what that points to.",
        examples=[{"to": "ann"}],
    )
    upload: str = Field(
        default="",
        description="The id of an upload, in place of the payload.",
        examples=[f"0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c.6000000.{'0' * 64}"],
    )
    at: At | None = Field(
        default=None,
        description="When the job is due, with a time zone. The past is now; 10 years ahead is the furthest.",
        examples=["2027-01-04T09:00:00+01:00"],
    )
    delay: Delay | None = Field(default=None, description="Seconds until the job is due.", examples=[90])
    key: Key | None = Field(
        default=None,
        description="The idempotency key: however often it is asked for, there is one job. As the header.",
        examples=["welcome-ann"],
    )
    id: Id | None = Field(
        default=None,
        description="An id that the caller made, which says when the job is due: however often it is asked for, there"
        " is one job. `GET /queues` tells what an id needs.",
        examples=["emails.0.t.1799049600000.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"],
    )
    tenant: Tenant | None = Field(
        default=None,
        description="Whose job it is: SQS does not let one tenant's flood hold up the queue's others.",
        examples=["customer-7"],
    )
    priority: Priority = Field(
        default=1,
        description="From 1, the most urgent, to as many as the queue has: each level is an SQS queue of its own.",
        examples=[1],
    )


class UploadBody(BaseModel):
    """A payload that is to be uploaded: its size, and its SHA-256 in hexadecimal."""

    model_config = _STRICT

    bytes: Integer = Field(
        json_schema_extra={"minimum": 1, "maximum": MAX_OFFLOADED_BYTES},
        description="The payload's size in bytes.",
        examples=[6_000_000],
    )
    sha256: str = Field(
        json_schema_extra={"pattern": "^[0-9a-f]{64}$"},
        description="Its SHA-256, in hexadecimal.",
        examples=["0" * 64],
    )


class TimeBody(BaseModel):
    """When a job is to be due: `at` an instant or after a `delay`, one of them."""

    model_config = _STRICT | ConfigDict(json_schema_extra={"oneOf": [_WITH_AT, _WITH_DELAY]})

    at: At | None = Field(
        default=None,
        description="When the job is due, with a time zone. The past is now; 10 years ahead is the furthest.",
        examples=["2027-01-05T09:00:00+01:00"],
    )
    delay: Delay | None = Field(default=None, description="Seconds until the job is due.", examples=[3600])


class RateBody(BaseModel):
    """How many jobs a queue's workers may begin in all; null lifts the limit."""

    model_config = _STRICT

    rate: RateText | None = Field(
        description="A number of jobs, 0 to 100,000, and a unit: a second, a minute or an hour. 0 stops the workers.",
        examples=["50/s"],
    )


class JobsBody(BaseModel):
    """Up to 500 jobs, each checked for itself: what is wrong with one is told in its place."""

    model_config = _STRICT

    jobs: list[SkipValidation[JobBody]] = Field(
        min_length=1,
        max_length=MAX_JOBS,
        description="The jobs, in the order of their answers.",
        examples=[[{"payload": {"to": "ann"}, "delay": 90}, {"payload": {"to": "bob"}}]],
    )


class IdsBody(BaseModel):
    """The ids of up to 500 jobs, each checked for itself: what is wrong with one is told in its place."""

    model_config = _STRICT

    ids: list[SkipValidation[str]] = Field(
        min_length=1,
        max_length=MAX_JOBS,
        description="The ids, in the order of their answers.",
        examples=[["emails.0.t.1799049600000.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"]],
    )
