"""Read the bodies of requests, and validate them against `forms`."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from json import JSONEncoder
from typing import Any, NoReturn

from aws_lambda_powertools.utilities.data_classes.common import BaseProxyEvent
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dueline.errors import DuelineError, InvalidJob
from dueline.model.rate import Rate
from dueline.model.request import Request
from dueline.model.trace import TraceContext
from dueline.protocol.given_id import check_alone
from functions.http.forms import IdsBody, JobBody, JobsBody, RateBody, TimeBody, UploadBody

MOST_SHOWN = 100
MOST_SHOWN_ERRORS = 3


def body_of(event: BaseProxyEvent) -> str:
    """Return the text of a request's body. Raises InvalidJob when it is no text."""
    try:
        return event.decoded_body or ""
    except ValueError:
        raise InvalidJob("body is not JSON: it is not UTF-8") from None


def read_jobs(
    text: str, *, key: str | None = None, trace: TraceContext | None = None
) -> Request | list[Request | DuelineError]:
    """Return what a body asks for: one request, or a list of requests and errors.

    `key` is the idempotency key of the request's header, which is for one job; `trace` is for all of them. Raises
    InvalidJob, naming the field, its value and what is allowed.
    """
    body = read_json(text)
    if not (isinstance(body, dict) and "jobs" in body):
        return _keyed(_request(body, trace=trace), key)
    if key is not None:
        raise InvalidJob(f"Idempotency-Key is {key[:100]!r}: it is for one job, give each of these its own key")
    try:
        jobs: Sequence[Any] = JobsBody.model_validate(body).jobs
    except ValidationError as error:
        raise InvalidJob(describe_errors(error, JobsBody)) from None
    return [_request_or_error(job, trace=trace) for job in jobs]


def _keyed(request: Request, key: str | None) -> Request:
    if None not in (key, request.key) and key != request.key:
        raise InvalidJob(f"key is {str(request.key)[:100]!r}, and Idempotency-Key another one: give one of them")
    keyed = replace(request, key=request.key if key is None else key)
    check_alone(keyed)
    return keyed


def read_time(text: str) -> TimeBody:
    """Return the time that a body asks for. Raises InvalidJob, naming the field, its value and what is allowed."""
    try:
        return TimeBody.model_validate(read_json(text))
    except ValidationError as error:
        raise InvalidJob(describe_errors(error, TimeBody)) from None


def read_upload(text: str) -> UploadBody:
    """Return the upload that a body asks for. Raises InvalidJob, naming the field, its value and what is allowed."""
    try:
        return UploadBody.model_validate(read_json(text))
    except ValidationError as error:
        raise InvalidJob(describe_errors(error, UploadBody)) from None


def read_rate(text: str) -> Rate | None:
    """Return the rate that a body asks for, nothing for no limit.

    Raises InvalidJob, naming the field, its value and what is allowed.
    """
    try:
        asked = RateBody.model_validate(read_json(text)).rate
    except ValidationError as error:
        raise InvalidJob(describe_errors(error, RateBody)) from None
    return None if asked is None else Rate.parse(asked)


def read_ids(text: str) -> list[str | DuelineError]:
    """Return the ids that a body names, an error in place of each that is no text.

    Raises InvalidJob, naming the field, its value and what is allowed.
    """
    try:
        ids: Sequence[Any] = IdsBody.model_validate(read_json(text)).ids
    except ValidationError as error:
        raise InvalidJob(describe_errors(error, IdsBody)) from None
    return [id if isinstance(id, str) else _not_a_text(id) for id in ids]


def _not_a_text(value: Any) -> InvalidJob:
    return InvalidJob(f"id is {_excerpt(value)}: it must be a text, as a job's answer told it")


def _excerpt(value: Any) -> str:
    """Return the beginning of a value as JSON, 100 characters at most.

    Written piece by piece: what json.loads reads may be nested too deeply for json.dumps to write it whole.
    """
    return "".join(islice(JSONEncoder().iterencode(value), MOST_SHOWN))[:MOST_SHOWN]


def read_json(text: str) -> Any:
    """Return what a body holds. Raises InvalidJob when it is not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidJob(f"body is not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _request_or_error(body: Any, *, trace: TraceContext | None) -> Request | DuelineError:
    try:
        return _request(body, trace=trace)
    except InvalidJob as error:
        return error


def _request(body: Any, *, trace: TraceContext | None) -> Request:
    try:
        job = JobBody.model_validate(body)
    except ValidationError as error:
        raise InvalidJob(describe_errors(error, JobBody)) from None
    _check_that_one_is_given(job.model_fields_set)
    upload = job.upload if "upload" in job.model_fields_set else None
    request = Request(
        payload=job.payload,
        upload=upload,
        at=job.at,
        delay=job.delay,
        key=job.key,
        id=job.id,
        tenant=job.tenant,
        priority=job.priority,
        trace=trace,
    )
    check_alone(request)
    return request


def _check_that_one_is_given(fields: set[str]) -> None:
    """A payload may be null: what counts is whether it is there."""
    given = fields & {"payload", "upload"}
    if not given:
        raise InvalidJob("payload is missing, and so is upload: give one of them")
    if len(given) > 1:
        raise InvalidJob("payload and upload are both given: give one of them")


def describe_errors(error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong with each of the first few fields, its value and what is allowed, and how many more are.

    An answer has 6 MB at most, and may tell of 500 jobs.
    """
    errors = error.errors(include_url=False)
    more = [f"and {len(errors) - MOST_SHOWN_ERRORS} more"] if len(errors) > MOST_SHOWN_ERRORS else []
    return "; ".join([_describe_error(wrong, model) for wrong in errors[:MOST_SHOWN_ERRORS]] + more)


def _describe_error(error: ErrorDetails, model: type[BaseModel]) -> str:
    field = ".".join(map(str, error["loc"]))[:MOST_SHOWN] or "body"
    if error["type"] == "extra_forbidden":
        names = [declared.alias or name for name, declared in model.model_fields.items()]
        return f"{field} is no field: there are {', '.join(names)}"
    if error["type"] == "missing":
        return f"{field} is missing"
    return f"{field} is {_excerpt(error['input'])}: {error['msg'].removeprefix('Value error, ')}"
