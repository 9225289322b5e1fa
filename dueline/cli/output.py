"""Values as JSON, in the same form as the HTTP API's answers."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from dueline.lookup.control import Control
from dueline.lookup.overview import Overview
from dueline.model import instant
from dueline.model.job import Route
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate


def json_of(value: object) -> Any:
    """Return a value as JSON can hold it: a dataclass as its fields, without those that are None."""
    if isinstance(value, Rate):
        return str(value)
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, Route) else value.value
    if isinstance(value, datetime):
        return instant.text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if dataclasses.is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: json_of(each) for name, each in named.items() if each is not None}
    return _json_of_many(value)


def settings_fields(queue: QueueSettings) -> dict[str, Any]:
    fields = json_of(queue)
    return {"queue": fields.pop("name"), **fields, "retention": int(queue.retention.total_seconds())}


def control_fields(control: Control) -> dict[str, Any]:
    return {"paused": control.paused, "rate": None if control.rate is None else str(control.rate)}


def overview_fields(name: str, overview: Overview) -> dict[str, Any]:
    depth = json_of(overview.depth)
    counts = json_of(overview) | control_fields(overview.control)
    levels, _ = counts.pop("levels"), counts.pop("control")
    # What is not known yet is null, as in the API's answer.
    unknown = {"next_due": None, "fence_age": None}
    return {"queue": name, **unknown, **counts, **depth, **({"levels": levels} if len(levels) > 1 else {})}


def _json_of_many(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(name): json_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [json_of(each) for each in value]
    return value
