"""Runs over dead letters, in the background: they take longer than a page waits for, and the page polls them."""

import random
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dueline.console.queue_views import Backend
from dueline.console.routing import Refused, make_route, parse_object, to_problem
from dueline.core.message import OFFLOADED_BYTES, REASON
from dueline.core.ports import QueueMessage
from dueline.core.retry import Calls, Patience
from dueline.core.text import shown
from dueline.errors import InvalidJob
from dueline.operations import dead_letters
from dueline.operations.redrive import Redrive, RedriveResult

# Receiving more dead letters would take minutes, in which they are hidden from everyone else.
MOST_RECEIVED = 10_000
_MOST_KEPT_RUNS = 4
# Of each text of a dead letter that a look keeps: so its 10,000 dead letters stay below 200 MB.
_MOST_CHARACTERS = 5_000
_PAGE = 20
# As long as it takes to make a few thousand messages visible again.
_CLOSING_SECONDS = 20.0


@dataclass(kw_only=True)
class BackgroundRun:
    """A run over the dead letters of a queue, and how far it is: `done` of so many messages, None at first.

    A look keeps the dead letters that it read, the last sent first: so each is on one page of them. One that failed
    has a result too, where it had changed anything.
    """

    id: str
    queue: str
    state: str = "running"
    done: int = 0
    of: int | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    is_closing: bool = False
    dead_letters: list[dict[str, Any]] = field(default_factory=list, repr=False)
    thread: threading.Thread = field(default_factory=threading.Thread, repr=False)

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("state", "done", "of", "result", "error")}

    def report(self, done: int, of: int) -> None:
        """Note how far the run is. Raises Refused once the console is closing."""
        self.done, self.of = done, of
        if self.is_closing:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the console was ended", code="console_ended")

    def carry_out(self, work: Callable[["BackgroundRun"], None]) -> None:
        try:
            work(self)
        except Exception as error:
            self.error = to_problem(error)
        # Last: a reader of the state goes on to the rest.
        self.state = "failed" if self.error else "done"


class BackgroundRuns:
    """The runs of a console, in memory: one at a time for each queue. The last 4 that ended are kept. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, BackgroundRun] = {}
        self._is_closing = False

    def start(self, queue: str, work: Callable[[BackgroundRun], None]) -> BackgroundRun:
        """Start a run, whose `work` a thread does. Raises Refused while the queue has another one."""
        with self._lock:
            run = BackgroundRun(id=secrets.token_hex(8), queue=queue, is_closing=self._is_closing)
            run.thread = threading.Thread(target=run.carry_out, args=(work,), daemon=True)
            ended = [each.id for each in self._runs.values() if each.state != "running"]
            if any(each.queue == queue for id, each in self._runs.items() if id not in ended):
                detail = f"a run over the dead letters of queue {queue!r} is under way: wait for its end"
                raise Refused(HTTPStatus.CONFLICT, detail, code="busy")
            for id in ended[: 1 - _MOST_KEPT_RUNS]:
                del self._runs[id]
            # Where no thread can be started, there is no run, and the queue is free for the next one.
            run.thread.start()
            self._runs[run.id] = run
        return run

    def find(self, id: str) -> BackgroundRun:
        """Return a run. Raises Refused where there is none."""
        if (run := self._runs.get(id)) is None:
            detail = f"there is no run {shown(id)}: it ended long ago, or with the console that started it"
            raise Refused(HTTPStatus.NOT_FOUND, detail, code="run_not_found")
        return run

    def close(self, *, seconds: float = _CLOSING_SECONDS) -> None:
        """End all runs, and wait so long for the messages that they hold to become visible again."""
        with self._lock:
            self._is_closing = True
            running = [run for run in self._runs.values() if run.thread.is_alive()]
            for run in running:
                run.is_closing = True
        for run in running:
            run.thread.join(seconds)


# What a run does with those dead letters of its queue that are selected: it sets the run's result.
Work = Callable[[Backend, BackgroundRun, dead_letters.DeadLetterFilter], None]


def dead_letter_routes(backend: Backend, runs: BackgroundRuns) -> Iterator[Route]:
    """Return the routes that start a run over dead letters, and the one that reads how far it is.

    Each start raises InvalidJob for a wrong field, and Refused while a run of the queue is under way.
    """

    def start_route(name: str, work: Work, *fields: str) -> Route:
        def handler(request: Request, body: bytes) -> Response:
            selection = _selection(parse_object(body), fields)
            run = runs.start(request.path_params["queue"], lambda run: work(backend, run, selection))
            return JSONResponse({"run": run.id}, HTTPStatus.ACCEPTED)

        path = f"/console/queues/{{queue}}/dead-letters/{name}"
        return make_route(path, ["POST"], handler, changes=work is not _look)

    def find(request: Request) -> BackgroundRun:
        return runs.find(request.path_params["id"])

    yield start_route("look", _look, "ids")
    yield start_route("redrive", _redrive, "groups", "messages")
    yield start_route("delete", _delete, "groups", "messages")
    yield make_route("/console/runs/{id}", ["GET"], lambda request, _: find(request).as_json())
    yield make_route("/console/runs/{id}/dead-letters", ["GET"], lambda request, _: _page(find(request), request))


def _page(run: BackgroundRun, request: Request) -> dict[str, Any]:
    """Return the dead letters of a look from a place on, all or those of some errors, and how many there are."""
    text, errors = request.query_params.get("from", "0"), request.query_params.getlist("error")
    if text not in map(str, range(MOST_RECEIVED)):
        raise InvalidJob(f"from is {shown(text)}: it must be a whole number from 0 to {MOST_RECEIVED - 1}")
    chosen = [each for each in run.dead_letters if not errors or each["error"] in errors]
    return {"dead_letters": chosen[int(text) : int(text) + _PAGE], "count": len(chosen)}


def _look(backend: Backend, run: BackgroundRun, selection: dead_letters.DeadLetterFilter) -> None:
    """Read dead letters, and count them by their error and kind. After it all are as before, and visible to others."""
    read = list[dict[str, Any]]()

    def keep(received: QueueMessage) -> None:
        read.append(_dead_letter(received))

    done = _over(backend, run, selection, most=MOST_RECEIVED, on_selected=keep).look()
    run.dead_letters = sorted(read, key=lambda each: str(each["sent"]), reverse=True)
    run.result = {**_received(done), "total": done.there, "groups": dead_letters.error_groups_json(done.kinds)}


def _redrive(backend: Backend, run: BackgroundRun, selection: dead_letters.DeadLetterFilter) -> None:
    """Put dead letters back."""
    redrive = _over(backend, run, selection, puts_back=True)
    _change(run, redrive, redrive.apply, selection)


def _delete(backend: Backend, run: BackgroundRun, selection: dead_letters.DeadLetterFilter) -> None:
    """Delete dead letters for good: of no more than a look receives."""
    redrive = _over(backend, run, selection, most=MOST_RECEIVED)
    _change(run, redrive, redrive.delete, selection)


def _over(
    backend: Backend,
    run: BackgroundRun,
    selection: dead_letters.DeadLetterFilter,
    *,
    puts_back: bool = False,
    **options: Any,
) -> Redrive:
    queues = backend.dead_letters(run.queue)
    if puts_back:  # what is only listed or deleted need not fit the queue
        options["rule"] = partial(dead_letters.to_its_queue, levels=len(queues.queues))
    options |= {"selection": selection, "limit": len(selection.messages) or None}
    calls = Calls(patience=Patience(), clock=backend.clock, jitter=random.random)
    return Redrive(queues, calls=calls, spread=backend.parallel_map, on_progress=run.report, **options)


def _change(
    run: BackgroundRun, redrive: Redrive, act: Callable[[], RedriveResult], selection: dead_letters.DeadLetterFilter
) -> None:
    """Change something, and note the counts: of what fails, those until then."""
    try:
        run.result = _counts(act(), selection)
    except Exception:
        run.result = _counts(redrive.result, selection)
        raise


def _received(done: RedriveResult) -> dict[str, Any]:
    return {"received": done.received, "hidden": done.hidden, "not_received": done.not_received}


def _counts(done: RedriveResult, selection: dead_letters.DeadLetterFilter) -> dict[str, Any]:
    # With a limit, more of them may be there.
    missing = max(0, len(selection.messages) - done.selected)
    stay, failed = dead_letters.reasons_json(done.stay), dead_letters.reasons_json(done.failed)
    return {**_received(done), "changed": done.moved, "missing": missing, "stay": stay, "failed": failed}


def _dead_letter(received: QueueMessage) -> dict[str, Any]:
    """Return a dead letter: its message and job, why it failed and where, when it died, and its payload.

    Long texts are cut, a stack trace to its end, and `cut` names those that are. The error and the kind stay as groups
    have them. SQS does not say when it moved a message itself, which then has no reason: `died` is None.
    """
    message, dead_letter = received.message, dead_letters.dead_letter_json(received)
    dead_letter["died"] = dead_letter["sent"] if REASON in message.attributes else None
    if (place := dead_letters.own_pointer(message)) is None:
        dead_letter["payload_text"] = message.body
    cut = [name for name, value in dead_letter.items() if isinstance(value, str) and len(value) > _MOST_CHARACTERS]
    for name in cut:
        text = dead_letter[name]
        dead_letter[name] = text[-_MOST_CHARACTERS:] if name == "stack" else text[:_MOST_CHARACTERS]
    if place is not None:
        bytes = dead_letters.number(message.attributes.get(OFFLOADED_BYTES))
        dead_letter["payload_at"] = {"bucket": place.bucket, "key": place.key, "bytes": bytes}
    return dead_letter | {"message": received.message_id} | ({"cut": cut} if cut else {})


def _selection(body: Mapping[str, Any], fields: tuple[str, ...]) -> dead_letters.DeadLetterFilter:
    """Return which dead letters a body chooses, by groups, by ids or messages, or all of them.

    Raises InvalidJob where it has other fields than those: a misspelt filter would select all; and for a wrong value.
    """
    for name, value in body.items():
        if name not in fields:
            raise InvalidJob(f"{shown(name)} is no field: there is {', '.join(fields)}")
        is_one, of = (_is_group, "groups as a look shows them") if name == "groups" else (_is_text, "ids")
        if not (isinstance(value, list) and 0 < len(value) <= MOST_RECEIVED and all(map(is_one, value))):
            raise InvalidJob(f"{name} is {shown(value)}: it must be a list of 1 to {MOST_RECEIVED} {of}")
    groups = frozenset((each["error"], each["kind"] or "") for each in body.get("groups", ()))
    return dead_letters.DeadLetterFilter(
        groups=groups, ids=frozenset(body.get("ids", ())), messages=frozenset(body.get("messages", ()))
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_group(value: object) -> bool:
    """Return whether a value is an error with a kind, which is None or a text."""
    return (
        isinstance(value, dict)
        and value.keys() == {"error", "kind"}
        and _is_text(value["error"])
        and (value["kind"] is None or _is_text(value["kind"]))
    )
