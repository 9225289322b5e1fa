"""The console as a whole: the page, the API behind it, and calls of its own, for whoever has the token."""

import secrets
from dataclasses import dataclass, field
from http import HTTPStatus

from dueline.console import files
from dueline.console.guard import Guard
from dueline.console.problems import Refused
from dueline.console.routes import Routes
from dueline.console.web import Answer, Request

# No script, style or picture from elsewhere, none written into the page, and no page of anyone else around it.
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_CALLS = ("/api/", "/console/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Console:
    """Answers the page's requests. `read_only` refuses each that would change anything.

    `place` is the path of the page's files, which a browser keeps. It is another in each run, and nobody knows it
    before: what another program has put into the browser's cache at this port is never taken for them.
    """

    guard: Guard
    routes: Routes
    read_only: bool = False
    place: str = field(default_factory=lambda: f"/{secrets.token_hex(16)}")

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request. Raises Refused, or what a route raises."""
        self.guard.check_host(request)
        if not request.path.startswith(_CALLS):
            return files.answer(request, place=self.place)
        self.guard.check_call(request)
        route, call = self.routes.find(request)
        if self.read_only and not request.is_read and route.writes(call):
            raise Refused(HTTPStatus.FORBIDDEN, "the console was started with --read-only", code="read_only")
        return route.answer(call)
