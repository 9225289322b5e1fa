"""`/api/…`: what the page asks the deployment's HTTP API. Nothing else is passed on."""

from collections.abc import Iterator
from functools import partial
from http import HTTPStatus

from dueline.client.http_answer import error_of
from dueline.console.forward import Way, forward
from dueline.console.problems import TYPE, Refused
from dueline.console.routes import Call, Route, always, never
from dueline.console.web import Answer, parsed

PREFIX = "/api"
_PREVIEW = "/schedules/preview"
_SCHEDULE = "/queues/{queue}/schedules/{schedule}"
# As docs/openapi.json has them, which a test compares.
ROUTES = {
    "/queues": "GET",
    "/queues/{queue}": "GET",
    "/queues/{queue}/cancellations": "POST",
    "/queues/{queue}/jobs": "GET POST",
    "/queues/{queue}/jobs/{id}": "DELETE GET PATCH",
    "/queues/{queue}/pause": "POST",
    "/queues/{queue}/rate": "PUT",
    "/queues/{queue}/resume": "POST",
    "/queues/{queue}/schedules": "GET",
    "/queues/{queue}/uploads": "POST",
    _SCHEDULE: "DELETE GET PUT",
    f"{_SCHEDULE}/history": "GET",
    **{f"{_SCHEDULE}/{verb}": "POST" for verb in ("backfill", "pause", "resume", "run")},
    _PREVIEW: "POST",
}


def api_routes(way: Way) -> Iterator[Route]:
    """Return the routes to an API."""
    answer = partial(_answer, way=way)
    for form, methods in ROUTES.items():
        writes = never if form == _PREVIEW else always
        for method in methods.split():
            yield Route(method=method, form=PREFIX + form, answer=answer, writes=writes)


def _answer(call: Call, *, way: Way) -> Answer:
    path = call.request.path.removeprefix(PREFIX)
    answer = forward(call.request, path, way=way)
    is_told = answer.headers.get("content-type", "").startswith(TYPE)
    if answer.status < HTTPStatus.BAD_REQUEST or is_told:
        return answer
    # What API Gateway says of a request that did not reach the API's function.
    error = error_of(parsed(answer.content), status=answer.status, asked=f"{call.request.method} {path}")
    raise Refused(answer.status, str(error), code=error.code, headers=dict(answer.headers))
