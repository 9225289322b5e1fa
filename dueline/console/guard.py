"""Who may send requests: the page that this console serves, and nobody else who reaches its port.

Any page in the browser can send requests to loopback. A page from elsewhere is recognized by its Origin, a name that
was rebound to 127.0.0.1 by its Host, a form by its content type; and all of them, and other users of the machine, lack
the token, which is new in each run and travels in the URL's fragment and in a header, never in a cookie.
"""

import secrets
from http import HTTPStatus
from http.client import HTTP_PORT

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dueline.console.routing import READS, Refused, error_response, header
from dueline.core.text import shown

TOKEN_HEADER = "x-dueline-console"  # noqa: S105, a header's name
_TOKEN_BYTES = 32
_OUR_SITES = ("same-origin", "none")
_JSON = "application/json"
# What the page's files need no token for is all but these.
_CALLS = ("/api/", "/console/")
# No script, style or picture from elsewhere, none written into the page, and no page of anyone else around it.
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def new_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


class Guard:
    """Refuses what does not come from the page at a port of 127.0.0.1, with a token; adds the headers above."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app, self._token = app, token
        # Browsers leave out the usual port.
        ends = ("", ":80") if port == HTTP_PORT else (f":{port}",)
        self._hosts = [f"{host}{end}" for host in ("127.0.0.1", "localhost") for end in ends]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        try:
            self._check(request)
        except Refused as refused:
            await error_response(request, refused)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _check(self, request: Request) -> None:
        """Raise Refused for another host than this machine's loopback, and for a call that the page did not make."""
        host = header(request, "host")
        if host not in self._hosts:
            detail = f"Host is {shown(host)}: it must be {' or '.join(self._hosts)}"
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, detail, code="wrong_host")
        if request.scope["path"].startswith(_CALLS):
            _check_origin(request, ours=f"http://{host}")
            self._check_token(request)
            _check_content_type(request)

    def _check_token(self, request: Request) -> None:
        token = header(request, TOKEN_HEADER) or ""
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            detail = "the token is missing or not this run's: open the URL that `dueline console` printed"
            raise Refused(HTTPStatus.UNAUTHORIZED, detail, code="wrong_token")


def _check_origin(request: Request, *, ours: str) -> None:
    origin, site = header(request, "origin"), header(request, "sec-fetch-site")
    if origin not in (None, ours):
        raise Refused(HTTPStatus.FORBIDDEN, f"Origin is {shown(origin)}: it must be {ours}", code="wrong_origin")
    if site not in (None, *_OUR_SITES):
        detail = f"Sec-Fetch-Site is {shown(site)}: it must be {' or '.join(_OUR_SITES)}"
        raise Refused(HTTPStatus.FORBIDDEN, detail, code="wrong_origin")


def _check_content_type(request: Request) -> None:
    content_type = header(request, "content-type") or ""
    if request.method not in READS and content_type.partition(";")[0].strip().lower() != _JSON:
        detail = f"content-type is {shown(content_type)}: it must be {_JSON}"
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail, code="no_json")
