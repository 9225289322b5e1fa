"""The trace that a job is scheduled in, as W3C Trace Context writes it, for its handler to continue.

Source: https://www.w3.org/TR/trace-context/
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from dueline.errors import InvalidJob

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
MAX_STATE_CHARACTERS = 512
# Of zeros alone, neither the trace nor its span has an id.
_PARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceContext:
    """A trace and a span of it: `parent` is a traceparent of version 00, `state` a tracestate, "" if there is none."""

    parent: str
    state: str = ""

    def __post_init__(self) -> None:
        if not _PARENT.fullmatch(self.parent):
            raise InvalidJob(
                f"{TRACEPARENT} is {self.parent[:100]!r}: it must be 00, 32, 16 and 2 hexadecimal digits in lower case,"
                " joined by -, the trace and the span not of zeros alone"
            )
        if not _is_state(self.state):
            raise InvalidJob(
                f"{TRACESTATE} is {self.state[:100]!r}: it must have at most {MAX_STATE_CHARACTERS} printable ASCII"
                " characters"
            )

    @classmethod
    def from_headers(cls, headers: Mapping[str, object]) -> Self | None:
        """Return the trace context in headers, a message's attributes or a row; None if there is none.

        A malformed traceparent or tracestate is ignored: no job is to fail for it.
        """
        if TRACEPARENT not in map(str.lower, headers):
            return None
        lowered = {name.lower(): value for name, value in headers.items()}
        parent, state = lowered.get(TRACEPARENT), lowered.get(TRACESTATE)
        if not isinstance(parent, str) or not _PARENT.fullmatch(parent):
            return None
        return cls(parent=parent, state=state if isinstance(state, str) and _is_state(state) else "")

    @property
    def headers(self) -> dict[str, str]:
        """The headers that carry it."""
        return {TRACEPARENT: self.parent} | ({TRACESTATE: self.state} if self.state else {})


def _is_state(text: str) -> bool:
    return len(text) <= MAX_STATE_CHARACTERS and text.isascii() and text.isprintable()
