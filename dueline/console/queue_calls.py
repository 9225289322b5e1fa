"""`/console/…`: what the page asks about queues that no one route of the API answers."""

from collections.abc import Callable, Iterator
from http import HTTPMethod, HTTPStatus
from typing import Any

from dueline.console.dead_letters import DeadLetterRuns
from dueline.console.due import due
from dueline.console.figures import figures
from dueline.console.overview import Glance
from dueline.console.reach import Reach
from dueline.console.routes import Call, Route, always, never
from dueline.console.runs import Run, Runs
from dueline.console.web import Answer

_QUEUE = "/console/queues/{queue}"
_DEAD = f"{_QUEUE}/dead-letters"


def queue_routes(reach: Reach, runs: Runs) -> Iterator[Route]:
    """Return the routes about queues and their dead letters."""
    glance, dead = Glance(reach), DeadLetterRuns(reach, runs)
    yield _got("/console/overview", lambda _: glance.read())
    yield _got(f"{_QUEUE}/due", lambda call: due(call.names["queue"], call.asked(), reach=reach))
    yield _got(f"{_QUEUE}/figures", lambda call: figures(call.names["queue"], call.asked(), reach=reach))
    yield _got("/console/runs/{id}", lambda call: runs.find(call.names["id"]).told())
    yield _begun(f"{_DEAD}/look", dead.look, writes=never)
    yield _begun(f"{_DEAD}/redrive", dead.redrive, writes=lambda call: call.json().get("apply") is not False)
    yield _begun(f"{_DEAD}/delete", dead.delete, writes=always)


def _got(form: str, read: Callable[[Call], dict[str, Any]]) -> Route:
    return Route(method=HTTPMethod.GET, form=form, answer=lambda call: Answer.json(read(call)))


def _begun(form: str, begin: Callable[[str, dict[str, Any]], Run], *, writes: Callable[[Call], bool]) -> Route:
    def answer(call: Call) -> Answer:
        return Answer.json({"run": begin(call.names["queue"], call.json()).id}, HTTPStatus.ACCEPTED)

    return Route(method=HTTPMethod.POST, form=form, answer=answer, writes=writes)
