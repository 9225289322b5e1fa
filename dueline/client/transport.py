"""Transport: what sends the client's requests."""

from collections.abc import Mapping
from typing import Protocol

from dueline.client.http_answer import HttpAnswer


class Transport(Protocol):
    """Sends requests, each once. Raises Unavailable when there is no answer."""

    def send(self, method: str, path: str, body: str | None, *, headers: Mapping[str, str]) -> HttpAnswer:
        """Send a request to the API, with `headers` added to the usual ones. Raises Forbidden without credentials."""

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """PUT a body to a presigned URL."""
