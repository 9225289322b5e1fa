"""Runs over dead letters, in the background: they take longer than a page waits for, and the page polls them."""

import random
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from sys import getsizeof
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dueline.console.queue_views import Backend
from dueline.console.routing import Refused, make_route, parse_object, refuse_if_read_only, to_problem
from dueline.core.message import OFFLOADED_BYTES, REASON
from dueline.core.ports import QueueMessage
from dueline.core.retry import Calls, Patience
from dueline.core.text import shown
from dueline.errors import InvalidJob
from dueline.operations.dead_letters import (
    DeadLetterFilter,
    dead_letter_json,
    error_groups_json,
    group_of,
    number,
    own_pointer,
    reasons_json,
    to_its_queue,
)
from dueline.operations.redrive import Redrive, RedriveResult

# Receiving more dead letters would take minutes, in which they are hidden from everyone else.
MOST_RECEIVED = 10_000
_MOST_KEPT_RUNS = 50
_MOST_KEPT_LOOKS = 3
# How much a look keeps of a text, at first and once its texts have 64 MB: so its 10,000 dead letters stay below 200 MB.
_MOST_CHARACTERS, _FEW_CHARACTERS, _MOST_TEXT_BYTES = 20_000, 200, 64 * 1024 * 1024
_PAGE = 20
# As long as it takes to make a few thousand messages visible again.
_CLOSING_SECONDS = 20.0

Body = Mapping[str, Any]
# What a run does with the dead letters of its queue, given what makes a Redrive of them from its filters: it sets the
# run's result.
Work = Callable[["BackgroundRun", Callable[..., Redrive]], None]


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
    """The runs of a console, in memory: one at a time for each queue. The last 50 that ended are kept. Thread-safe."""

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
            looks = [id for id in ended if self._runs[id].dead_letters]
            for id in {*ended[: 1 - _MOST_KEPT_RUNS], *looks[: 1 - _MOST_KEPT_LOOKS]}:
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


def dead_letter_routes(backend: Backend, runs: BackgroundRuns) -> Iterator[Route]:
    """Return the routes that start a run over dead letters, and the one that reads how far it is.

    Each start raises InvalidJob for a wrong field, and Refused while a run of the queue is under way.
    """

    def start_route(name: str, plan: Callable[[Request, Body], Work], *, changes: bool) -> Route:
        def handler(request: Request, body: bytes) -> Response:
            work = plan(request, parse_object(body))
            run = runs.start(request.path_params["queue"], lambda run: work(run, partial(_redrive_of, backend, run)))
            return JSONResponse({"run": run.id}, HTTPStatus.ACCEPTED)

        return make_route(f"/console/queues/{{queue}}/dead-letters/{name}", ["POST"], handler, changes=changes)

    def find(request: Request) -> BackgroundRun:
        return runs.find(request.path_params["id"])

    yield start_route("look", _look, changes=False)
    yield start_route("redrive", _redrive, changes=False)
    yield start_route("delete", _delete, changes=True)
    yield make_route("/console/runs/{id}", ["GET"], lambda request, _: find(request).as_json())
    yield make_route("/console/runs/{id}/dead-letters", ["GET"], lambda request, _: _page(find(request), request))


def _page(run: BackgroundRun, request: Request) -> dict[str, Any]:
    """Return the dead letters of a look from a place on, all or those of some of its groups, and how many there are."""
    params, groups = request.query_params, (run.result or {}).get("groups", [])
    places = [_index("group", text, below=len(groups)) for text in params.getlist("group")]
    chosen = {(groups[at]["error"], groups[at]["kind"]) for at in places}
    dead_letters = [each for each in run.dead_letters if not chosen or (each["error"], each["kind"]) in chosen]
    start = _index("from", params.get("from", "0"), below=MOST_RECEIVED)
    return {"dead_letters": dead_letters[start : start + _PAGE], "count": len(dead_letters)}


def _index(name: str, text: str, *, below: int) -> int:
    """Return a parameter that counts from 0."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) < below):
        must = f"a whole number from 0 to {below - 1}" if below else "left out: this run has none"
        raise InvalidJob(f"{name} is {shown(text)}: it must be {must}")
    return int(text)


def _redrive_of(backend: Backend, run: BackgroundRun, *, puts_back: bool = False, **filters: Any) -> Redrive:
    queues = backend.dead_letters(run.queue)
    if puts_back:  # of what is only listed or deleted, nothing has to fit the queue
        filters["rule"] = partial(to_its_queue, levels=len(queues.queues))
    calls = Calls(patience=Patience(), clock=backend.clock, jitter=random.random)
    return Redrive(queues, calls=calls, spread=backend.parallel_map, on_progress=run.report, **filters)


def _look(_: Request, body: Body) -> Work:
    """Read dead letters, all or those of some jobs, and count them by their error and kind.

    After it all are as before, and visible to others.
    """
    selection = _selection(body, "ids")

    def work(run: BackgroundRun, redrive: Callable[..., Redrive]) -> None:
        dead_letters, texts = list[dict[str, Any]](), 0

        def keep(received: QueueMessage) -> None:
            nonlocal texts
            most = _MOST_CHARACTERS if texts < _MOST_TEXT_BYTES else _FEW_CHARACTERS
            dead_letters.append(_dead_letter(received, most=most))
            texts += sum(getsizeof(value) for value in dead_letters[-1].values() if isinstance(value, str))

        done = redrive(selection=selection, most=MOST_RECEIVED, on_selected=keep).look()
        run.dead_letters = sorted(dead_letters, key=lambda each: str(each["sent"]), reverse=True)
        run.result = {**_received(done), "total": done.there, "groups": error_groups_json(done.kinds)}

    return work


def _redrive(request: Request, body: Body) -> Work:
    """Put dead letters back, or with `apply` false, which a read-only console allows, count those that would be."""
    if body.get("apply") is not False:
        refuse_if_read_only(request)
    selection = _selection(body, "groups", "messages", "limit", "apply")
    apply, limit = body.get("apply", False), body.get("limit") or len(selection.messages) or None

    def work(run: BackgroundRun, redrive: Callable[..., Redrive]) -> None:
        moves = redrive(selection=selection, limit=limit, puts_back=True)

        def counts(done: RedriveResult) -> dict[str, Any]:
            return _counts(done, selection) | {"applied": apply, "moved": done.moved, "stay": reasons_json(done.stay)}

        if apply:
            _change(run, moves, moves.apply, counts)
        else:
            run.result = counts(moves.look())

    return work


def _delete(request: Request, body: Body) -> Work:
    """Delete dead letters for good, once `confirm` is the queue's name: of no more than a look receives."""
    selection = _selection(body, "confirm", "groups", "messages")
    if body.get("confirm") != (queue := request.path_params["queue"]):
        raise InvalidJob(f"confirm is {shown(body.get('confirm'))}: it must be the queue's name, {queue!r}")

    def work(run: BackgroundRun, redrive: Callable[..., Redrive]) -> None:
        deletes = redrive(selection=selection, limit=len(selection.messages) or None, most=MOST_RECEIVED)
        _change(run, deletes, deletes.delete, lambda done: _counts(done, selection) | {"deleted": done.moved})

    return work


def _change(
    run: BackgroundRun,
    redrive: Redrive,
    act: Callable[[], RedriveResult],
    counts: Callable[[RedriveResult], dict[str, Any]],
) -> None:
    """Change something, and note the counts: of what fails, those until then."""
    try:
        run.result = counts(act())
    except Exception:
        run.result = counts(redrive.result)
        raise


def _received(done: RedriveResult) -> dict[str, Any]:
    return {"received": done.received, "hidden": done.hidden, "not_received": done.not_received}


def _counts(done: RedriveResult, selection: DeadLetterFilter) -> dict[str, Any]:
    # With a limit, more of them may be there.
    missing = max(0, len(selection.messages) - done.selected)
    groups, failed = error_groups_json(done.kinds), reasons_json(done.failed)
    return {**_received(done), "wanted": done.selected, "missing": missing, "groups": groups, "failed": failed}


def _dead_letter(received: QueueMessage, *, most: int) -> dict[str, Any]:
    """Return a dead letter: its message and job, why it failed and where, when it died, and its payload.

    Texts are cut to `most` characters, a stack trace to its end, and `cut` names those that are. The error and the kind
    stay as groups have them. SQS does not say when it moved a message itself, which then has no reason: `died` is None.
    """
    message, (error, kind) = received.message, group_of(received.message)
    dead_letter = dead_letter_json(received)
    dead_letter["died"] = dead_letter["sent"] if REASON in message.attributes else None
    if (place := own_pointer(message)) is None:
        dead_letter["payload_text"] = message.body
    cut = [name for name, value in dead_letter.items() if isinstance(value, str) and len(value) > most]
    for name in cut:
        dead_letter[name] = dead_letter[name][-most:] if name == "stack" else dead_letter[name][:most]
    if place is not None:
        bytes = number(message.attributes.get(OFFLOADED_BYTES))
        dead_letter["payload_at"] = {"bucket": place.bucket, "key": place.key, "bytes": bytes}
    dead_letter |= {"message": received.message_id, "error": error, "kind": kind or None}
    return dead_letter | ({"cut": cut} if cut else {})


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MOST_RECEIVED and all(isinstance(id, str) and id for id in value)


def _are_groups(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and _is_group(**each) for each in value)


def _is_group(error: object = "", kind: object = "", **others: object) -> bool:
    """Return whether a value is a group as a look shows it, whose kind is null or a text."""
    texts = [error] if kind is None else [error, kind]
    return not others and all(isinstance(text, str) and text for text in texts)


_IDS = (_are_ids, f"a list of up to {MOST_RECEIVED} ids, or empty for all")
# The fields of bodies: what is right, and how that is said.
_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "ids": _IDS,
    "messages": _IDS,
    "groups": (_are_groups, 'a list of {"error": …, "kind": …}, with null for no kind, or empty for all'),
    "limit": (lambda value: value is None or (type(value) is int and value >= 1), "a whole number from 1, or null"),
    "apply": (lambda value: isinstance(value, bool), "true or false"),
    "confirm": (lambda _: True, ""),
}


def _selection(body: Body, *allowed: str) -> DeadLetterFilter:
    """Return which dead letters a body chooses, by groups, by ids or messages, or all of them.

    Raises InvalidJob where it has other fields than those: a misspelt filter would select all; and for a wrong value.
    """
    for name, value in body.items():
        if name not in allowed:
            raise InvalidJob(f"{shown(name)} is no field: there is {', '.join(allowed)}")
        is_right, must = _FIELDS[name]
        if not is_right(value):
            raise InvalidJob(f"{name} is {shown(value)}: it must be {must}")
    groups = frozenset((each["error"], each["kind"] or "") for each in body.get("groups", ()))
    return DeadLetterFilter(
        groups=groups, ids=frozenset(body.get("ids", ())), messages=frozenset(body.get("messages", ()))
    )
