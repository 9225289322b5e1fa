"""An operation of the API and its bodies, as the OpenAPI document describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A body of a request or of an answer: its type, a description, and examples by name.

    `leads_to` names the operations that take the job of an answer: links, in OpenAPI. A request may come without a body
    that `is_optional`.
    """

    form: Any
    description: str
    examples: Mapping[str, Any]
    leads_to: tuple[str, ...] = ()
    is_optional: bool = False

    def __post_init__(self) -> None:
        if not self.examples:
            raise ValueError(f"{self.form} has no examples: give at least one")


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """An operation of the API; `id` is the name of the function that carries it out.

    `refused` are statuses that only this operation and some others have; `keyed` is one that takes an idempotency key,
    `traced` one whose jobs carry the trace context of its headers, `conditional` one that takes an entity tag,
    `creating` one that may be asked to create alone, `tagged` one that answers with an entity tag.
    """

    id: str
    method: str
    path: str
    tag: str
    summary: str
    description: str
    answers: Mapping[HTTPStatus, Body]
    body: Body | None = None
    query: type[BaseModel] | None = None
    refused: tuple[HTTPStatus, ...] = field(default=())
    keyed: bool = False
    traced: bool = False
    conditional: bool = False
    creating: bool = False
    tagged: bool = False
