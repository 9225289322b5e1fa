"""`/console/…`: what the page asks that no one route of the API answers."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from dueline.console import asked
from dueline.console.dead_letters import DeadLetterRuns
from dueline.console.due import due
from dueline.console.figures import AT_A_GLANCE, figures
from dueline.console.overview import overview
from dueline.console.reach import Reach
from dueline.console.routes import Call, Route, always, never
from dueline.console.runs import Run, Runs
from dueline.console.web import Answer

_QUEUE = "/console/queues/{queue}"
_DEAD = f"{_QUEUE}/dead-letters"


def console_routes(about: Callable[[], dict[str, Any]], reach: Reach, runs: Runs) -> Iterator[Route]:
    """Return the routes to what the console itself tells of a deployment, `about` it, its queues and dead letters."""
    dead = DeadLetterRuns(reach, runs)

    def glance(_: Call) -> dict[str, Any]:
        names = [queue["queue"] for queue in reach.ask("/queues")["queues"]]
        return figures(names, timedelta(hours=1), reach=reach, names=AT_A_GLANCE)

    yield _got("/console/about", lambda _: about())
    yield _got("/console/overview", lambda _: overview(reach))
    yield _got("/console/figures", glance)
    yield _got(f"{_QUEUE}/figures", lambda call: figures([call.names["queue"]], asked.hours(call.asked()), reach=reach))
    yield _got(f"{_QUEUE}/due", lambda call: due(call.names["queue"], asked.hours(call.asked()), reach=reach))
    yield _got("/console/runs/{id}", lambda call: runs.find(call.names["id"]).told())
    yield _begun(f"{_DEAD}/look", dead.look, writes=never)
    yield _begun(f"{_DEAD}/redrive", dead.redrive, writes=lambda call: call.json().get("apply") is not False)
    yield _begun(f"{_DEAD}/delete", dead.delete, writes=always)


def _got(form: str, read: Callable[[Call], dict[str, Any]]) -> Route:
    return Route(method="GET", form=form, answer=lambda call: Answer.json(read(call)))


def _begun(form: str, begin: Callable[[str, dict[str, Any]], Run], *, writes: Callable[[Call], bool]) -> Route:
    def answer(call: Call) -> Answer:
        return Answer.json({"run": begin(call.names["queue"], call.json()).id}, HTTPStatus.ACCEPTED)

    return Route(method="POST", form=form, answer=answer, writes=writes)
