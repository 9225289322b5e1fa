"""Who may ask: the page that this console serves, and nobody else who reaches its port.

Any page in the browser can send requests to loopback. A page from elsewhere is told by its Origin, a name that was
rebound to 127.0.0.1 by its Host, a form by its content type; and all of them, and other users of the machine, lack the
token, which is made anew for each run and travels in the URL's fragment and in a header, never in a cookie.
"""

import secrets
from dataclasses import dataclass, field
from http import HTTPStatus

from dueline.console.problems import Refused
from dueline.console.web import JSON, Request
from dueline.model.text import shown

TOKEN_HEADER = "x-dueline-console"  # noqa: S105, a header's name
_TOKEN_BYTES = 32
_HTTP_PORT = 80
_OUR_SITES = ("same-origin", "none")


def new_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """Refuses what does not come from the page at a port of 127.0.0.1, with a token."""

    port: int
    token: str = field(repr=False)

    def check_host(self, request: Request) -> None:
        """Raise Refused for another name than that of this machine's loopback."""
        host = request.headers.get("host")
        if host not in self._hosts():
            detail = f"Host is {shown(host)}: it must be {' or '.join(self._hosts())}"
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, detail, code="wrong_host")

    def check_call(self, request: Request) -> None:
        """Raise Refused for a call that the page did not make, or without the token."""
        self.check_host(request)
        self._check_origin(request)
        given = request.headers.get(TOKEN_HEADER, "").encode()
        if not secrets.compare_digest(given, self.token.encode()):
            detail = "the token is missing or not this run's: open the URL that `dueline console` printed"
            raise Refused(HTTPStatus.UNAUTHORIZED, detail, code="wrong_token")
        if not request.is_read:
            _check_is_json(request)

    def _check_origin(self, request: Request) -> None:
        origin, ours = request.headers.get("origin"), f"http://{request.headers.get('host')}"
        if origin not in (None, ours):
            detail = f"Origin is {shown(origin)}: it must be {ours}"
            raise Refused(HTTPStatus.FORBIDDEN, detail, code="wrong_origin")
        site = request.headers.get("sec-fetch-site", "none")
        if site not in _OUR_SITES:
            detail = f"Sec-Fetch-Site is {shown(site)}: it must be {' or '.join(_OUR_SITES)}"
            raise Refused(HTTPStatus.FORBIDDEN, detail, code="wrong_origin")

    def _hosts(self) -> list[str]:
        # Browsers leave out the port that is HTTP's own.
        end = "" if self.port == _HTTP_PORT else f":{self.port}"
        return [f"127.0.0.1{end}", f"localhost{end}"]


def _check_is_json(request: Request) -> None:
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != JSON:
        detail = f"content-type is {shown(content_type)}: it must be {JSON}"
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail, code="no_json")
