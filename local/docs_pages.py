"""The API's documentation in a browser: the OpenAPI document, and a page to read it and try it out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files

from local.template import ROOT

OPENAPI = ROOT / "docs" / "openapi.json"
# Powertools brings the whole of it, so that nothing is fetched from elsewhere.
_SWAGGER_UI = files("aws_lambda_powertools.event_handler.openapi.swagger_ui")
_HTML = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Dueline</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="/docs/swagger-ui.js"></script>
<script>SwaggerUIBundle({url: "/openapi.json", dom_id: "#page", deepLinking: true, tryItOutEnabled: true})</script>
</body>
</html>
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What is served under a path."""

    content_type: str
    content: bytes


def page(path: str) -> Page | None:
    """Return the page of a path, or None where the API is to be called."""
    make = _PAGES.get(path.partition("?")[0])
    return None if make is None else make()


def _html() -> Page:
    return Page(content_type="text/html; charset=utf-8", content=_HTML.encode())


def _openapi() -> Page:
    return Page(content_type="application/json", content=OPENAPI.read_bytes())


def _script() -> Page:
    content = (_SWAGGER_UI / "swagger-ui-bundle.min.js").read_bytes()
    return Page(content_type="text/javascript; charset=utf-8", content=content)


def _style() -> Page:
    return Page(content_type="text/css; charset=utf-8", content=(_SWAGGER_UI / "swagger-ui.min.css").read_bytes())


_PAGES: Mapping[str, Callable[[], Page]] = {
    "/docs": _html,
    "/docs/": _html,
    "/docs/swagger-ui.js": _script,
    "/docs/swagger-ui.css": _style,
    "/openapi.json": _openapi,
}
