"""A job as it is posted, the same at every attempt."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from dueline.errors import DuelineError
from dueline.model import instant
from dueline.model.trace import TraceContext

# What an id of the longest queue name takes, with its own field's name, in a JSON string.
_MOST_BYTES_OF_AN_ID = 150


@dataclass(kw_only=True, slots=True)
class Name:
    """By what a job is one job, however often it is sent: its `id`, which says when it is due, or its `key`.

    Without either of its caller's it gets one as it is first sent, and keeps it, whatever becomes of that request.
    """

    id: str | None = None
    key: str | None = None

    def __bool__(self) -> bool:
        return self.id is not None or self.key is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpDraft:
    """A job as JSON text: its payload, `rest` of its fields, and when it is due.

    Its `trace` goes in the headers of the request, which has one for all of its jobs.
    """

    payload: str = field(repr=False)
    rest: dict[str, Any]
    at: datetime | None = None
    delay: float | None = None
    name: Name
    trace: TraceContext | None = None

    @property
    def key(self) -> str | None:
        return self.name.key

    @property
    def asked(self) -> str:
        """The JSON object of all its fields but the payload."""
        return json.dumps({**self._when(), **self.rest})

    @property
    def text(self) -> str:
        return self.around(f'"payload":{self.payload}')

    @property
    def size(self) -> int:
        """The bytes that it takes of a function's event, in which a request's body is a JSON string, escaped."""
        return len(json.dumps(self.text)) + (0 if self.name else _MOST_BYTES_OF_AN_ID)

    @property
    def group(self) -> TraceContext | None:
        return self.trace

    def around(self, content: str) -> str:
        """Return the JSON object of its fields with one more, in the payload's place."""
        fields = self.asked[1:-1]
        return f"{{{content},{fields}}}" if fields else f"{{{content}}}"

    def after(self, _: DuelineError) -> Self:
        return self

    def _when(self) -> dict[str, Any]:
        if self.name.id is not None:
            return {"id": self.name.id}
        return {
            **({} if self.at is None else {"at": instant.text(instant.round_up(self.at))}),
            **({} if self.delay is None else {"delay": self.delay}),
            **({} if self.name.key is None else {"key": self.name.key}),
        }
