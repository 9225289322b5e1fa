"""Which requests there are an answer to. A path that no form matches exactly is refused, and none is normalized."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from dueline.console.problems import Refused
from dueline.console.web import Answer, Request, parsed
from dueline.model.job import QUEUE_NAME
from dueline.model.nominal import SCHEDULE_NAME
from dueline.model.text import shown

_FORMS = {"queue": QUEUE_NAME, "schedule": SCHEDULE_NAME, "id": r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A request that has its route. `names` is what its path names, such as the queue."""

    request: Request
    names: Mapping[str, str]

    def asked(self) -> dict[str, str]:
        """Return the fields of the query string, of a repeated one the last."""
        return dict(parse_qsl(self.request.query, keep_blank_values=True))

    def json(self) -> dict[str, Any]:
        """Return the JSON object that came, an empty one where nothing did. Raises Refused."""
        value = parsed(self.request.body() or b"{}")
        if not isinstance(value, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body must be a JSON object", code="no_json")
        return value


def always(_: Call) -> bool:
    """Take a call for one that writes."""
    return True


def never(_: Call) -> bool:
    """Take a call for one that changes nothing."""
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """What answers requests of a method to paths of a form, such as `/queues/{queue}`.

    `writes` tells whether a call changes anything, which a read-only console refuses; of a GET it is not asked.
    """

    method: str
    form: str
    answer: Callable[[Call], Answer]
    writes: Callable[[Call], bool] = always


class Routes:
    """Routes, found by the method and the path of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = [(pattern(route.form), route) for route in routes]

    def find(self, request: Request) -> tuple[Route, Call]:
        """Return the route of a request. Raises Refused where there is none: 404, or 405 for another method."""
        found = {
            route.method: (route, match) for form, route in self._routes if (match := form.fullmatch(request.path))
        }
        if not found:
            raise no_such(request)
        method = "GET" if request.is_read else request.method
        if method not in found:
            raise not_so(request, found)
        route, match = found[method]
        return route, Call(request=request, names=match.groupdict())


def pattern(form: str) -> re.Pattern[str]:
    """Return what matches the paths of a form, which names its parts by what they are."""
    return re.compile(re.sub(r"\{(\w+)\}", lambda part: f"(?P<{part[1]}>{_FORMS[part[1]]})", form))


def no_such(request: Request) -> Refused:
    """Return the refusal of a path that nothing answers."""
    detail = f"there is nothing at {shown(request.path)}: paths are taken as they are written"
    return Refused(HTTPStatus.NOT_FOUND, detail, code="route_not_found")


def not_so(request: Request, methods: Iterable[str]) -> Refused:
    """Return the refusal of a method, where a path has others."""
    allowed = ", ".join(sorted(methods))
    detail = f"{shown(request.path)} cannot be asked with {request.method}: there is {allowed}"
    return Refused(HTTPStatus.METHOD_NOT_ALLOWED, detail, code="method_not_allowed", headers={"allow": allowed})
