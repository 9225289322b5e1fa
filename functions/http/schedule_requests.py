"""Read requests about schedules, and validate them against `schedule_forms`. What is wrong is InvalidSchedule."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.data_classes.common import BaseProxyEvent
from pydantic import BaseModel, ValidationError

from dueline.errors import InvalidJob, InvalidSchedule
from dueline.model.request import json_text
from dueline.model.text import shown
from dueline.schedules.definition import Definition
from functions.http import bodies
from functions.http.schedule_forms import (
    BackfillBody,
    HistoryQuery,
    PreviewBody,
    RuleFields,
    RunBody,
    ScheduleBody,
    SchedulesQuery,
)

Form = TypeVar("Form", bound=BaseModel)


def body_of(event: BaseProxyEvent) -> str:
    """Return the text of a request's body. Raises InvalidSchedule when it is no text."""
    with _of_schedules():
        return bodies.body_of(event)


def read_definition(text: str) -> Definition:
    """Return the schedule that a body asks for. Raises InvalidSchedule, which names the field."""
    body = _read(ScheduleBody, _json(text))
    given = {name: getattr(body, name) for name in body.model_fields_set}
    if "payload" in given:
        given["payload"] = _payload(given["payload"])
    return Definition.from_dict(given)


def read_preview(text: str) -> tuple[Definition, datetime | None, int]:
    """Return a rule, as that of a schedule, after when its runs are asked, and how many. Raises InvalidSchedule."""
    body = _read(PreviewBody, _json(text))
    given = {name: getattr(body, name) for name in body.model_fields_set & RuleFields.model_fields.keys()}
    return Definition.from_dict(given), body.since, body.limit


def read_run(text: str) -> str | None:
    """Return the payload, as JSON text, that a body gives, if any. Raises InvalidSchedule."""
    body = _read(RunBody, _json(text) if text else {})
    return _payload(body.payload) if body.model_fields_set else None


def read_backfill(text: str) -> BackfillBody:
    """Return what a body asks to be run. Raises InvalidSchedule."""
    return _read(BackfillBody, _json(text))


def read_only_new(if_none_match: str | None) -> bool:
    """Tell whether a schedule is to be created and not changed. Raises InvalidSchedule for any header but `*`."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise InvalidSchedule(f"If-None-Match is {shown(if_none_match)}: it must be *, which is only to create")
    return if_none_match is not None


def read_list(query: Mapping[str, Any]) -> SchedulesQuery:
    """Return which schedules a query string asks for. Raises InvalidSchedule."""
    return _read(SchedulesQuery, query)


def read_history(query: Mapping[str, Any]) -> HistoryQuery:
    """Return which runs a query string asks for. Raises InvalidSchedule."""
    return _read(HistoryQuery, query)


@contextmanager
def _of_schedules() -> Iterator[None]:
    """Let what is wrong with a body be wrong with a schedule."""
    try:
        yield
    except InvalidJob as error:
        raise InvalidSchedule(str(error)) from None


def _json(text: str) -> Any:
    if not text:
        raise InvalidSchedule("body is empty: it must be a JSON object")
    with _of_schedules():
        return bodies.read_json(text)


def _payload(payload: object) -> str:
    with _of_schedules():
        return json_text(payload)


def _read(form: type[Form], given: Any) -> Form:
    try:
        return form.model_validate(given)
    except ValidationError as error:
        raise InvalidSchedule(bodies.describe_errors(error, form)) from None
