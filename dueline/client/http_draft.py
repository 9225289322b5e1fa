"""A job as it is posted, the same at every attempt."""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from dueline.errors import DuelineError
from dueline.model import instant
from dueline.model.trace import TraceContext

# What an id of the longest queue name takes, with its own field's name, in a JSON string.
_MOST_BYTES_OF_AN_ID = 150


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpDraft:
    """A job as JSON text: its payload, `rest` of its fields, and when it is due.

    Before it is first sent it gets an `id`, which says when it is due, or a `key`, unless its caller gave it one: by
    this it is one job, however often it is sent. Its `trace` goes in the headers of the request, which has one for all
    of its jobs.
    """

    payload: str = field(repr=False)
    rest: dict[str, Any]
    at: datetime | None = None
    delay: float | None = None
    id: str | None = None
    key: str | None = None
    trace: TraceContext | None = None

    @property
    def is_named(self) -> bool:
        """Tell whether it has an id or a key."""
        return self.id is not None or self.key is not None

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
        return len(json.dumps(self.text)) + (0 if self.is_named else _MOST_BYTES_OF_AN_ID)

    @property
    def group(self) -> TraceContext | None:
        return self.trace

    def around(self, content: str) -> str:
        """Return the JSON object of its fields with one more, in the payload's place."""
        fields = self.asked[1:-1]
        return f"{{{content},{fields}}}" if fields else f"{{{content}}}"

    def after(self, error: DuelineError) -> Self:
        """Return what to send after that error: under the id, or the key, that it had when it was sent."""
        return self if self.is_named else replace(self, id=None if error.key else error.job_id, key=error.key)

    def _when(self) -> dict[str, Any]:
        if self.id is not None:
            return {"id": self.id}
        return {
            **({} if self.at is None else {"at": instant.text(instant.round_up(self.at))}),
            **({} if self.delay is None else {"delay": self.delay}),
            **({} if self.key is None else {"key": self.key}),
        }
