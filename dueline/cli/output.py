"""Values as JSON, in the form that the HTTP API gives them."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
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
    """Return a value as what JSON has; of dataclasses the fields, without those that are None."""
    if isinstance(value, Rate):
        return str(value)
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, Route) else value.value
    if isinstance(value, datetime):
        return instant.text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: json_of(each) for name, each in named.items() if each is not None}
    return _of_many(value)


def settings_told(queue: QueueSettings) -> dict[str, Any]:
    told = json_of(queue)
    return {"queue": told.pop("name"), **told, "retention": int(queue.retention.total_seconds())}


def control_told(control: Control) -> dict[str, Any]:
    return {"paused": control.paused, "rate": None if control.rate is None else str(control.rate)}


def overview_told(name: str, overview: Overview) -> dict[str, Any]:
    depth = json_of(overview.depth)
    told = json_of(overview) | control_told(overview.control)
    levels, _ = told.pop("levels"), told.pop("control")
    # What is not known yet is told as null, as the API does.
    nothing = {"next_due": None, "fence_age": None}
    return {"queue": name, **nothing, **told, **depth, **({"levels": levels} if len(levels) > 1 else {})}


def _of_many(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(name): json_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [json_of(each) for each in value]
    return value
