"""The bodies of requests, validated."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation, ValidationError
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails

from dueline import instant
from dueline.errors import DuelineError, InvalidJob
from dueline.job import MAX_PRIORITY, MAX_TENANT_CHARACTERS
from dueline.keys import MAX_CHARACTERS
from dueline.submit import FURTHEST, Request

MAX_JOBS = 500
_STRICT = ConfigDict(extra="forbid", strict=True)


def instant_of(at: Any) -> datetime:
    """Return the instant that a text in ISO 8601 names. Raises ValueError, saying what is allowed."""
    try:
        return instant.parse(at)
    except (TypeError, ValueError):
        raise ValueError("must be a text in ISO 8601 with a zone, such as 2026-01-01T09:00:00Z") from None


# What the core checks is only told here (`json_schema_extra`): its own errors say more than pydantic's.
At = Annotated[datetime, BeforeValidator(instant_of)]
Delay = Annotated[float, Field(json_schema_extra={"minimum": 0, "maximum": FURTHEST.total_seconds()})]
Key = Annotated[str, Field(json_schema_extra={"pattern": f"^[ -~]{{1,{MAX_CHARACTERS}}}$"})]
Tenant = Annotated[str, Field(json_schema_extra={"pattern": f"^[!-~]{{1,{MAX_TENANT_CHARACTERS}}}$"})]
Priority = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_PRIORITY})]
_WITH_AT: JsonDict = {"required": ["at"], "properties": {"at": {"type": "string"}}}
_WITH_DELAY: JsonDict = {"required": ["delay"], "properties": {"delay": {"type": "number"}}}


class JobBody(BaseModel):
    """A job as it is posted: due `at` an instant or after a `delay`, not both; without either it is due now."""

    model_config = _STRICT | ConfigDict(json_schema_extra={"not": {"allOf": [_WITH_AT, _WITH_DELAY]}})

    payload: Any = Field(
        description="Any JSON: the body of the message that the worker gets. 256 KiB at most.", examples=[{"to": "ann"}]
    )
    at: At | None = Field(
        default=None,
        description="When the job is due, with a zone. The past is now; 10 years ahead is the furthest.",
        examples=["2027-01-04T09:00:00+01:00"],
    )
    delay: Delay | None = Field(default=None, description="Seconds until the job is due.", examples=[90])
    key: Key | None = Field(
        default=None,
        description="The idempotency key: however often it is asked for, there is one job. As the header.",
        examples=["welcome-ann"],
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


class TimeBody(BaseModel):
    """When a job is to be due: `at` an instant or after a `delay`, one of them."""

    model_config = _STRICT | ConfigDict(json_schema_extra={"oneOf": [_WITH_AT, _WITH_DELAY]})

    at: At | None = Field(
        default=None,
        description="When the job is due, with a zone. The past is now; 10 years ahead is the furthest.",
        examples=["2027-01-05T09:00:00+01:00"],
    )
    delay: Delay | None = Field(default=None, description="Seconds until the job is due.", examples=[3600])


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


def read(text: str, *, key: str | None = None) -> Request | list[Request | DuelineError]:
    """Return what a body asks for: one request, or a list of requests and errors.

    `key` is the idempotency key of the request's header, which is for one job. Raises InvalidJob, naming the field, its
    value and what is allowed.
    """
    body = _json(text)
    if not (isinstance(body, dict) and "jobs" in body):
        return _keyed(_request(body), key)
    if key is not None:
        raise InvalidJob(f"Idempotency-Key is {key[:100]!r}: it is for one job, give each of these its own key")
    try:
        jobs: Sequence[Any] = JobsBody.model_validate(body).jobs
    except ValidationError as error:
        raise InvalidJob(described(error, JobsBody)) from None
    return [_request_or_error(job) for job in jobs]


def _keyed(request: Request, key: str | None) -> Request:
    if None not in (key, request.key) and key != request.key:
        raise InvalidJob(f"key is {str(request.key)[:100]!r}, and Idempotency-Key another one: give one of them")
    return replace(request, key=request.key if key is None else key)


def read_time(text: str) -> TimeBody:
    """Return the time that a body asks for. Raises InvalidJob, naming the field, its value and what is allowed."""
    try:
        return TimeBody.model_validate(_json(text))
    except ValidationError as error:
        raise InvalidJob(described(error, TimeBody)) from None


def read_ids(text: str) -> list[str | DuelineError]:
    """Return the ids that a body names, an error in place of each that is no text.

    Raises InvalidJob, naming the field, its value and what is allowed.
    """
    try:
        ids: Sequence[Any] = IdsBody.model_validate(_json(text)).ids
    except ValidationError as error:
        raise InvalidJob(described(error, IdsBody)) from None
    return [id if isinstance(id, str) else _no_id(id) for id in ids]


def _no_id(value: Any) -> InvalidJob:
    return InvalidJob(f"id is {json.dumps(value)[:100]}: it must be a text, as a job's answer told it")


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidJob(f"body is not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _request_or_error(body: Any) -> Request | DuelineError:
    try:
        return _request(body)
    except InvalidJob as error:
        return error


def _request(body: Any) -> Request:
    try:
        job = JobBody.model_validate(body)
    except ValidationError as error:
        raise InvalidJob(described(error, JobBody)) from None
    return Request(
        payload=job.payload, at=job.at, delay=job.delay, key=job.key, tenant=job.tenant, priority=job.priority
    )


def described(error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong with each field, its value and what is allowed."""
    return "; ".join(_describe(each, model) for each in error.errors())


def _describe(error: ErrorDetails, model: type[BaseModel]) -> str:
    field = ".".join(map(str, error["loc"])) or "body"
    if error["type"] == "extra_forbidden":
        names = [known.alias or name for name, known in model.model_fields.items()]
        return f"{field} is no field: there are {', '.join(names)}"
    if error["type"] == "missing":
        return f"{field} is missing"
    return f"{field} is {json.dumps(error['input'])[:100]}: {error['msg'].removeprefix('Value error, ')}"
