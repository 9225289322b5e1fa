"""What there is to tell of an operation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """A body of a request or of an answer: its type, what it means, and examples by name.

    Operations in `leads_to` take the job that an answer tells of.
    """

    form: Any
    means: str
    examples: Mapping[str, Any]
    leads_to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.examples:
            raise ValueError(f"{self.form} has no examples: give at least one")


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """An operation of the API; `id` is the name of the function that carries it out.

    `refused` are statuses that only this operation and some others have; `keyed` is one that takes an idempotency key,
    `traced` one whose jobs carry the trace context of its headers.
    """

    id: str
    method: str
    path: str
    tag: str
    summary: str
    means: str
    answers: Mapping[HTTPStatus, Told]
    body: Told | None = None
    query: type[BaseModel] | None = None
    refused: tuple[HTTPStatus, ...] = field(default=())
    keyed: bool = False
    traced: bool = False
