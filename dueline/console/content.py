"""The content of a request, read when it is asked for, and no more of it than is allowed."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Protocol

from dueline.console.problems import Refused
from dueline.model.text import shown

# What Lambda takes, and so the API.
MOST_BYTES = 6 * 1024 * 1024
# What is sent all the same is taken off the connection, so that whoever sends it gets to the answer.
_MOST_SKIPPED_BYTES = 8 * MOST_BYTES
_READ_BYTES = 1 << 16


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Content:
    """What follows a request's headers on its connection."""

    def __init__(self, file: _Readable, headers: Mapping[str, str]) -> None:
        self._file = file
        self._length = headers.get("content-length", "0")
        self._is_chunked = "transfer-encoding" in headers
        self._read: bytes | None = None

    @property
    def can_be_skipped(self) -> bool:
        """Whether the connection can go on after it."""
        return self._read is not None or (
            not self._is_chunked and _is_count(self._length) and int(self._length) <= _MOST_SKIPPED_BYTES
        )

    def read(self) -> bytes:
        """Return it; the same each time. Raises Refused where it is too large, or is not told or sent in whole."""
        if self._read is None:
            length = self._checked()
            try:
                came = self._file.read(length)
            except OSError:
                came = b""
            if len(came) < length:
                detail = f"of a body of {length} bytes, {len(came)} came"
                raise Refused(HTTPStatus.BAD_REQUEST, detail, code="cut_off", headers={"connection": "close"})
            self._read = came
        return self._read

    def skip(self) -> bool:
        """Take what was not read off the connection; tell whether all of it came."""
        left = int(self._length) if self._read is None else 0
        while left and (some := self._file.read(min(left, _READ_BYTES))):
            left -= len(some)
        return not left

    def _checked(self) -> int:
        if self._is_chunked:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the body must come with a content-length, and not in chunks")
        if not _is_count(self._length):
            raise Refused(HTTPStatus.BAD_REQUEST, f"content-length is {shown(self._length)}: it must be a number")
        if int(self._length) > MOST_BYTES:
            detail = f"the body has {self._length} bytes: it may have up to {MOST_BYTES}"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, code="payload_too_large")
        return int(self._length)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < len(str(_MOST_SKIPPED_BYTES)) + 10
