"""The console as a Starlette application: the page, the API behind it, and the console's own calls."""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dueline.console.guard import Guard
from dueline.console.routing import make_route, unmatched

PAGE = Path(__file__).parent / "page"
# Not from this machine's table of types: a browser runs no module of another type.
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# While the console runs: what it serves then does not change.
_KEPT = {"cache-control": "private, max-age=86400"}
_BELOW_QUEUE = ("", "/jobs", "/jobs/{id}", "/dead-letters", "/schedules", "/schedules/{schedule}")
_VIEWS = ("/", "/schedules", "/dead-letters", "/search", *(f"/queues/{{queue}}{below}" for below in _BELOW_QUEUE))


def console_app(routes: Iterable[Route], *, port: int, token: str, read_only: bool = False) -> Starlette:
    """Return the application that serves the page and these routes to those whom the guard lets through."""
    guard = Middleware(Guard, port=port, token=token)
    return make_app([*page_routes(), *routes], middleware=[guard], read_only=read_only)


def make_app(routes: Sequence[Route], *, middleware: Sequence[Middleware] = (), read_only: bool = False) -> Starlette:
    """Return an application that matches paths exactly as they were sent, and answers errors with problem details."""
    app = Starlette(
        routes=routes, middleware=[Middleware(RawPath), *middleware], exception_handlers={HTTPException: unmatched}
    )
    app.router.redirect_slashes = False
    app.state.read_only = read_only
    return app


class RawPath:
    """Has routes match the path as it was sent: with an escape or a dot segment it is another path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "path": scope["raw_path"].decode()}, receive, send)


def page_routes() -> Iterator[Route]:
    """Return the routes to the page's views and files.

    The files are below a path that is different in each run, and that nobody can guess: what another program has put
    into the browser's cache at this port is never used in their place.
    """
    folder = f"/{secrets.token_hex(16)}"
    # All at once: each would else be known only once the one that imports it is loaded.
    modules = "".join(
        f'<link rel="modulepreload" href="{folder}/{file.relative_to(PAGE).as_posix()}">'
        for file in sorted([*PAGE.glob("*.js"), PAGE / "vendor" / "preact-htm.js"])
    )
    index = (PAGE / "index.html").read_text().replace("{modules}", modules).replace("{folder}", folder)
    for view in _VIEWS:
        yield make_route(view, ["GET"], lambda *_: HTMLResponse(index))
    # Only files that exist: no path of a request ever becomes a file's path.
    for file in PAGE.rglob("*"):
        if file.suffix in _TYPES:
            yield _file_route(f"{folder}/{file.relative_to(PAGE).as_posix()}", file)


def _file_route(path: str, file: Path) -> Route:
    content, media_type = file.read_bytes(), _TYPES[file.suffix]
    return make_route(path, ["GET"], lambda *_: Response(content, headers=_KEPT, media_type=media_type))
