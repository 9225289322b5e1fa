"""The page: its files, by their names, and index.html at each view's path."""

from pathlib import Path

from dueline.console.routes import no_such, not_so, pattern
from dueline.console.web import Answer, Request

PAGE = Path(__file__).parent / "page"
# Not by what this machine takes a suffix for: a browser runs no module of another type.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_BELOW = ("", "/jobs", "/jobs/{id}", "/dead-letters", "/schedules", "/schedules/{schedule}")
_VIEWS = [pattern("/"), *(pattern(f"/queues/{{queue}}{below}") for below in _BELOW)]


def answer(request: Request) -> Answer:
    """Return the file at a path. Raises Refused where there is none."""
    if not request.is_read:
        raise not_so(request, ["GET"])
    if (file := _file_at(request.path)) is None:
        raise no_such(request)
    return Answer(content=file.read_bytes(), headers={"content-type": _TYPES[file.suffix]})


def _file_at(path: str) -> Path | None:
    """Return the file of a path, out of those that there are: no path is ever made into a file's."""
    if any(view.fullmatch(path) for view in _VIEWS):
        return PAGE / "index.html"
    files = {f"/{file.relative_to(PAGE).as_posix()}": file for file in PAGE.rglob("*") if file.suffix in _TYPES}
    return files.get(path)
