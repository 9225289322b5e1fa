"""What the console's server takes and gives: requests, as they came, and answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

JSON = "application/json"
_JSON = {"content-type": JSON}


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request. Its target is as it came, nothing in it normalized; the names of its headers are in lower case.

    `body` returns the content, read at the first call. It raises Refused where that is too large or does not come.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: Callable[[], bytes] = field(repr=False)

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def is_read(self) -> bool:
        return self.method in ("GET", "HEAD")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer: status, headers and content."""

    status: int = HTTPStatus.OK
    content: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: Any, status: int = HTTPStatus.OK, *, headers: Mapping[str, str] = _JSON) -> Self:
        """Return a JSON value as an answer."""
        return cls(status=status, content=json.dumps(value).encode(), headers=headers)


def parsed(content: bytes) -> Any:
    """Return what JSON says, None where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


Answering = Callable[[Request], Answer]
