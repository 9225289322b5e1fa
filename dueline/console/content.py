"""The content of a request, read when it is asked for, and no more of it than is allowed."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from io import BufferedIOBase

from dueline.console.problems import Refused
from dueline.model.text import shown

# What Lambda takes, and so the API.
MOST_BYTES = 6 * 1024 * 1024
# What is sent all the same is taken off the connection, so that whoever sends it gets to the answer.
_MOST_SKIPPED_BYTES = 8 * MOST_BYTES
_READ_BYTES = 1 << 16


class Content:
    """What follows a request's headers on its connection."""

    def __init__(self, file: BufferedIOBase, headers: Mapping[str, str]) -> None:
        self._file = file
        self._told = headers.get("content-length", "0")
        self._is_chunked = "transfer-encoding" in headers
        self._is_told = not self._is_chunked and re.fullmatch("[0-9]{1,18}", self._told) is not None
        self._left = int(self._told) if self._is_told else 0

    @property
    def can_be_skipped(self) -> bool:
        """Whether the connection can go on after it."""
        return self._is_told and self._left <= _MOST_SKIPPED_BYTES

    def read(self) -> bytes:
        """Return it, once. Raises Refused where it is too large, or is not told or sent in whole."""
        self._check()
        try:
            came = self._file.read(self._left)
        except OSError:
            came = b""
        self._left -= len(came)
        if self._left:
            detail = f"of a body of {self._told} bytes, {len(came)} came"
            raise Refused(HTTPStatus.BAD_REQUEST, detail, code="cut_off", headers={"connection": "close"})
        return came

    def skip(self) -> bool:
        """Take what was not read off the connection; tell whether all of it came."""
        while self._left and (some := self._file.read(min(self._left, _READ_BYTES))):
            self._left -= len(some)
        return not self._left

    def _check(self) -> None:
        if self._is_chunked:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the body must come with a content-length, and not in chunks")
        if not self._is_told:
            raise Refused(HTTPStatus.BAD_REQUEST, f"content-length is {shown(self._told)}: it must be a number")
        if self._left > MOST_BYTES:
            detail = f"the body has {self._left} bytes: it may have up to {MOST_BYTES}"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, code="payload_too_large")
