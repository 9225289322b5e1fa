"""What requests about jobs and queues hold: their forms, and how these are read.

docs/openapi.json is written from the forms: the string below a field is its description there.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from json import JSONEncoder
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from aws_lambda_powertools.utilities.data_classes.common import BaseProxyEvent
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation, ValidationError
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails

from dueline.core import instant
from dueline.core.idempotency import check_alone
from dueline.core.job import (
    FORM,
    KIND,
    MAX_KEY_CHARACTERS,
    MAX_OFFLOADED_BYTES,
    MAX_PRIORITY,
    MAX_TENANT_CHARACTERS,
    State,
    check_kind,
)
from dueline.core.listing import FAR_END, MOST_JOBS, Span, read_place
from dueline.core.queue_settings import Rate
from dueline.core.request import FURTHEST, IfExists, Request
from dueline.core.retry import attempt
from dueline.core.status import ATTEMPTED
from dueline.core.trace import TraceContext
from dueline.errors import DuelineError, InvalidJob

MAX_JOBS = 500
MOST_SHOWN = 100
MOST_SHOWN_ERRORS = 3
MOST_FIELDS = 1000
STRICT = ConfigDict(extra="forbid", strict=True)
Form = TypeVar("Form", bound=BaseModel)


def _instant(at: Any) -> datetime:
    try:
        return instant.parse(at)
    except (TypeError, ValueError):
        raise ValueError("must be a text in ISO 8601 with a time zone, such as 2026-01-01T09:00:00Z") from None


def _rate(rate: Any) -> str:
    if not isinstance(rate, str):
        raise ValueError("must be a text such as 50/s, 90/m or 200/h, or null for no limit")
    return rate


def _integral(number: Any) -> Any:
    """Return a number without a fraction as an int, as JSON has but one kind of number: 615.0 is 615."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _place(text: str) -> str:
    try:
        return read_place(text)
    except ValueError:
        raise ValueError("must be the `next` of an earlier answer, as it was") from None


# What the core checks is only described here (`json_schema_extra`): its own errors say more than pydantic's.
At = Annotated[datetime, BeforeValidator(_instant)]
Delay = Annotated[float, Field(json_schema_extra={"minimum": 0, "maximum": FURTHEST.total_seconds()})]
Key = Annotated[str, Field(json_schema_extra={"pattern": f"^[ -~]{{1,{MAX_KEY_CHARACTERS}}}$"})]
Id = Annotated[str, Field(json_schema_extra={"pattern": f"^{FORM}$"})]
Kind = Annotated[str, Field(json_schema_extra={"pattern": f"^{KIND}$"})]
Tenant = Annotated[str, Field(json_schema_extra={"pattern": f"^[!-~]{{1,{MAX_TENANT_CHARACTERS}}}$"})]
Integer = Annotated[int, BeforeValidator(_integral)]
_SPAN = Annotated[str, Field(json_schema_extra={"pattern": instant.SPAN_PATTERN})]
Duration = Annotated[int, BeforeValidator(instant.seconds, json_schema_input_type=int | _SPAN)]
Priority = Annotated[Integer, Field(json_schema_extra={"minimum": 1, "maximum": MAX_PRIORITY})]
RateText = Annotated[str, BeforeValidator(_rate), Field(json_schema_extra={"pattern": "^(0?[0-9]{1,5}|100000)/[smh]$"})]
# In a query string, all is text.
Limit = Annotated[int, Field(strict=False, ge=1, le=MOST_JOBS, examples=[50])]
_WITH_PAYLOAD: JsonDict = {"required": ["payload"]}
_WITH_UPLOAD: JsonDict = {"required": ["upload"]}
_WITH_AT: JsonDict = {"required": ["at"], "properties": {"at": {"type": "string"}}}
_WITH_DELAY: JsonDict = {"required": ["delay"], "properties": {"delay": {"type": "number"}}}
_WITH_ID: JsonDict = {"required": ["id"], "properties": {"id": {"type": "string"}}}
_WITH_KEY: JsonDict = {"required": ["key"], "properties": {"key": {"type": "string"}}}
_BESIDE_AN_ID: JsonDict = {"anyOf": [_WITH_AT, _WITH_DELAY, _WITH_KEY]}
_CONTRADICTION: JsonDict = {"anyOf": [{"allOf": [_WITH_AT, _WITH_DELAY]}, {"allOf": [_WITH_ID, _BESIDE_AN_ID]}]}
_POSTED: JsonDict = {"not": _CONTRADICTION, "oneOf": [_WITH_PAYLOAD, _WITH_UPLOAD]}


class JobBody(BaseModel):
    """A job as it is posted: due `at` an instant or after a `delay`, not both; without either it is due now.

    It has a `payload`, or an `upload` in its place. An `id` takes the place of `at`, `delay` and `key`.
    """

    model_config = STRICT | ConfigDict(json_schema_extra=_POSTED)

    payload: Any = None
    """Any JSON, 10 MiB at most: the body of the message that the worker gets, or what that points to."""
    upload: str = ""
    """The id of an upload, in place of the payload."""
    at: At | None = None
    """When the job is due, with a time zone. The past is now; 10 years ahead is the furthest."""
    delay: Delay | None = None
    """Seconds until the job is due."""
    key: Key | None = None
    """The job's name: one job of its queue has it at a time, to be found, moved and cancelled by it."""
    if_exists: Literal["keep", "replace", "fail"] = "keep"
    """What becomes of a job that has the key and waits: it is kept and returned, it is replaced, or the call fails."""
    idempotency_key: Key | None = None
    """The name of the call: repeats of it make one job. As the header, for one of several jobs."""
    id: Id | None = None
    """An id that the caller made, which says when the job is due: repeats of the request make one job. `GET /queues`
    has what an id needs."""
    kind: Kind | None = None
    """Which handler of the queue runs it. Without one: the handler without a kind."""
    tenant: Tenant | None = None
    """Whose job it is: SQS does not let one tenant's flood hold up the queue's others."""
    priority: Priority = 1
    """From 1, the most urgent, to as many as the queue has: each level is an SQS queue of its own."""


class JobsBody(BaseModel):
    """Up to 500 jobs, each checked for itself: what is wrong with one is answered in its place."""

    model_config = STRICT

    jobs: list[SkipValidation[JobBody]] = Field(min_length=1, max_length=MAX_JOBS)
    """The jobs, in the order of their answers."""


class CancellationsBody(BaseModel):
    """The ids or keys of up to 500 jobs, each checked for itself: what is wrong with one is answered in its place."""

    model_config = STRICT | ConfigDict(json_schema_extra={"oneOf": [{"required": ["ids"]}, {"required": ["keys"]}]})

    ids: list[SkipValidation[str]] = Field(default_factory=list, min_length=1, max_length=MAX_JOBS)
    """The ids, in the order of their answers."""
    keys: list[SkipValidation[Key]] = Field(default_factory=list, min_length=1, max_length=MAX_JOBS)
    """The keys, in the order of their answers."""


class TimeBody(BaseModel):
    """When a job is to be due: `at` an instant or after a `delay`, one of them."""

    model_config = STRICT | ConfigDict(json_schema_extra={"oneOf": [_WITH_AT, _WITH_DELAY]})

    at: At | None = None
    """When the job is due, with a time zone. The past is now; 10 years ahead is the furthest."""
    delay: Delay | None = None
    """Seconds until the job is due."""


class UploadBody(BaseModel):
    """A payload that is to be uploaded: its size, and its SHA-256 in hexadecimal."""

    model_config = STRICT

    bytes: Annotated[Integer, Field(json_schema_extra={"minimum": 1, "maximum": MAX_OFFLOADED_BYTES})]
    """The payload's size in bytes."""
    sha256: Annotated[str, Field(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})]
    """Its SHA-256, in hexadecimal."""


class RateBody(BaseModel):
    """How many jobs a queue's workers may begin in all; null lifts the limit."""

    model_config = STRICT

    rate: RateText | None
    """A number of jobs, 0 to 100,000, and a unit: a second, a minute or an hour. 0 stops the workers."""


class JobsQuery(BaseModel):
    """What jobs to list: due from `from` to just before `to`, `limit` at most, behind the page that gave `next`."""

    model_config = STRICT

    start: At | None = Field(default=None, alias="from", examples=["2027-01-04T00:00:00Z"])
    """Jobs due at this instant or later, with a zone. Without it: from now on if they are scheduled, else all."""
    end: At = Field(default=FAR_END, alias="to", examples=["2027-01-05T00:00:00Z"])
    """Jobs due before this instant, with a zone. Without it: all."""
    limit: Limit = 20
    """The most jobs to return."""
    after: Annotated[str, BeforeValidator(_place)] = Field(
        default="", alias="next", json_schema_extra={"minLength": 1}, examples=["IjIwMjctMDEtMDRUMDg6MDA6MDAuMDAwWiI"]
    )
    """Go on behind an earlier page: its `next`, as it was."""
    key: Key = Field(default="", examples=["welcome-ann"])
    """The job that was scheduled under this key, wherever it is now, in place of a page. It goes with nothing else."""

    kind: Kind | None = Field(default=None, examples=["welcome"])
    """Only the jobs of this kind. Without it: all."""
    state: Literal["scheduled", "attempted", "running", "dispatched", "succeeded", "failed", "skipped"] = Field(
        default="scheduled", examples=["failed"]
    )
    """`scheduled`: in due order. Of a queue that tracks its jobs: those that workers received, the last due first,
    `attempted` for all. `dispatched`: between two attempts; `running`: also where the worker has died since."""

    @property
    def is_tracked(self) -> bool:
        """Whether it lists what workers recorded."""
        return self.state != "scheduled"

    @property
    def only(self) -> State | None:
        """The one state to list of these."""
        return None if self.state == ATTEMPTED else State(self.state)

    def span(self, *, now: datetime) -> Span:
        """Return which jobs to list. Raises InvalidJob, naming the field, its value and what is allowed."""
        check_kind(self.kind)
        if others := self.model_fields_set - {"key"} if "key" in self.model_fields_set else None:
            names = ", ".join(sorted(type(self).model_fields[name].alias or name for name in others))
            raise InvalidJob(f"key and {names} are both given: give key for one job, or {names} for a page of them")
        # What goes on begins behind `next`: the present has moved since.
        start = self.start or (instant.EPOCH if self.after or self.is_tracked else now)
        start, end = max(start, instant.EPOCH), min(self.end, FAR_END)
        if end < start:
            raise InvalidJob(f"to is {end.isoformat()}: it must not be before from, {instant.text(start)}")
        return Span(start=start, end=end, after=self.after, limit=self.limit, kind=self.kind)


class KeyQuery(BaseModel):
    """Which job is meant: the one that has the key."""

    model_config = STRICT

    key: Key = Field(examples=["welcome-ann"])
    """The job's key."""


def body_of(event: BaseProxyEvent) -> str:
    """Return the text of a request's body. Raises InvalidJob when it is no text."""
    try:
        return event.decoded_body or ""
    except ValueError:
        raise InvalidJob("body is not JSON: it is not UTF-8") from None


def read_body(form: type[Form], text: str) -> Form:
    """Return a body as a form. Raises InvalidJob, naming the field, its value and what is allowed."""
    return validate(form, read_json(text))


def read_jobs(
    text: str, *, call: str | None = None, trace: TraceContext | None = None
) -> Request | list[Request | DuelineError]:
    """Return the job of a body, or the list of its jobs, with an error in place of each that is wrong.

    `call` is the request's Idempotency-Key, if it has one: each of several jobs is a call of its own. `trace` is for
    all of them. Raises InvalidJob, naming the field, its value and what is allowed.
    """
    body = read_json(text)
    if not (isinstance(body, dict) and "jobs" in body):
        return _request(body, call=call, trace=trace)
    jobs: Sequence[Any] = validate(JobsBody, body).jobs
    most = MAX_KEY_CHARACTERS - len(f"#{len(jobs) - 1}")
    if call is not None and len(call) > most:
        raise InvalidJob(f"Idempotency-Key has {len(call)} characters: with {len(jobs)} jobs it has at most {most}")
    calls = [None if call is None else f"{call}#{index}" for index in range(len(jobs))]
    several = [attempt(partial(_request, call=each, trace=trace), job) for job, each in zip(jobs, calls, strict=True)]
    # Errors are kept until the answer: without the frames, and all that these hold.
    return [each.with_traceback(None) if isinstance(each, DuelineError) else each for each in several]


def read_cancellations(text: str) -> tuple[list[str | DuelineError], list[object]]:
    """Return the ids that a body names, an error in place of each that is no text, or the keys. Raises InvalidJob."""
    body = read_body(CancellationsBody, text)
    if len(body.model_fields_set) != 1:
        what = "both given" if body.model_fields_set else "both missing"
        raise InvalidJob(f"ids and keys are {what}: give one of them")
    ids: Sequence[Any] = body.ids
    must = "it must be a text, as in a job's answer"
    return [id if isinstance(id, str) else InvalidJob(f"id is {_excerpt(id)}: {must}") for id in ids], [*body.keys]


def read_rate(text: str) -> Rate | None:
    """Return the rate of a body, None for no limit. Raises InvalidJob."""
    rate = read_body(RateBody, text).rate
    return None if rate is None else Rate.parse(rate)


def _request(body: Any, *, call: str | None, trace: TraceContext | None) -> Request:
    job = validate(JobBody, body)
    # A payload may be null: what counts is whether it is there.
    present = job.model_fields_set & {"payload", "upload"}
    if not present:
        raise InvalidJob("payload is missing, and so is upload: give one of them")
    if len(present) > 1:
        raise InvalidJob("payload and upload are both given: give one of them")
    # Its other fields are named as those of a Request.
    fields = {**dict(job), "if_exists": IfExists(job.if_exists), "trace": trace}
    fields["upload"] = job.upload if "upload" in present else None
    own_call = fields.pop("idempotency_key")
    request = Request(**fields, call=call if own_call is None else own_call)
    check_alone(request)
    return request


def read_json(text: str) -> Any:
    """Return what a body holds. Raises InvalidJob when it is not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidJob(f"body is not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def check_number_of_fields(values: Any) -> Any:
    """Return values, unless they are far more than any form has: pydantic's errors about each would fill the memory."""
    if isinstance(values, Mapping) and len(values) > MOST_FIELDS:
        raise ValueError(f"at most {MOST_FIELDS} fields are allowed, and it has {len(values)}")
    return values


def validate(form: type[Form], values: Mapping[str, Any]) -> Form:
    """Return values as a form. Raises InvalidJob: what is wrong with each of the first few fields, and how many more.

    An answer has 6 MB at most, and may be about 500 jobs.
    """
    try:
        return form.model_validate(check_number_of_fields(values))
    except ValidationError as wrong:
        reasons = _reasons(wrong, form)
    except ValueError as wrong:
        reasons = f"body is {_excerpt(values)}: {wrong}"
    # Out here the error has no context, which is all of pydantic's errors.
    raise InvalidJob(reasons)


def _reasons(wrong: ValidationError, form: type[BaseModel]) -> str:
    errors = wrong.errors(include_url=False)
    more = [f"and {len(errors) - MOST_SHOWN_ERRORS} more"] if len(errors) > MOST_SHOWN_ERRORS else []
    return "; ".join([_describe(one, form) for one in errors[:MOST_SHOWN_ERRORS]] + more)


def _describe(error: ErrorDetails, form: type[BaseModel]) -> str:
    field = ".".join(map(str, error["loc"]))[:MOST_SHOWN] or "body"
    if error["type"] == "extra_forbidden":
        names = [declared.alias or name for name, declared in form.model_fields.items()]
        return f"{field} is no field: there are {', '.join(names)}"
    if error["type"] == "missing":
        return f"{field} is missing"
    return f"{field} is {_excerpt(error['input'])}: {error['msg'].removeprefix('Value error, ')}"


def _excerpt(value: Any) -> str:
    """Return the beginning of a value as JSON, 100 characters at most.

    Written piece by piece: what json.loads reads may be nested too deeply for json.dumps to write it whole.
    """
    return "".join(islice(JSONEncoder().iterencode(value), MOST_SHOWN))[:MOST_SHOWN]
