"""The page: index.html at each view's path, and its other files, by their names, below a path of the run's own."""

from pathlib import Path

from dueline.console.routes import no_such, not_so, pattern
from dueline.console.web import Answer, Request

PAGE = Path(__file__).parent / "page"
# Not by what this machine takes a suffix for: a browser runs no module of another type.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# While the console runs: what it serves then does not change.
_KEPT = "private, max-age=86400"
_BELOW = ("", "/jobs", "/jobs/{id}", "/dead-letters", "/schedules", "/schedules/{schedule}")
_VIEWS = [pattern("/"), *(pattern(f"/queues/{{queue}}{below}") for below in _BELOW)]


def answer(request: Request, *, place: str) -> Answer:
    """Return what is at a path; `place` is that of the page's files. Raises Refused where there is nothing."""
    if not request.is_read:
        raise not_so(request, ["GET"])
    if any(view.fullmatch(request.path) for view in _VIEWS):
        content = (PAGE / "index.html").read_bytes().replace(b"{place}", place.encode())
        return Answer(content=content, headers={"content-type": "text/html; charset=utf-8"})
    # Out of those that there are: no path is ever made into a file's.
    files = {f"{place}/{file.relative_to(PAGE).as_posix()}": file for file in PAGE.rglob("*") if file.suffix in _TYPES}
    if (file := files.get(request.path)) is None:
        raise no_such(request)
    return Answer(content=file.read_bytes(), headers={"content-type": _TYPES[file.suffix], "cache-control": _KEPT})
