"""The schedules in a worker's code, and declaring them over the HTTP API when it starts."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dueline.core import instant
from dueline.core.job import checked_schedule_name
from dueline.errors import RETRYABLE, InvalidSchedule, ScheduleChanged
from dueline.worker.delivery import ReceivedJob
from dueline.worker.events import Event, EventKind, Report, error_event
from dueline.worker.handlers import Handler, Handlers

if TYPE_CHECKING:
    from dueline.client.schedules import Schedule, Schedules

Call = Callable[[ReceivedJob], Any]


@dataclass(kw_only=True, slots=True, eq=False)
class CodeSchedule:
    """A schedule in the code: `arguments` are those of the client's `put`, `call` processes its jobs, if set."""

    queue: str
    name: str
    arguments: Mapping[str, Any]
    call: Call | None = None


class CodeSchedules:
    """The schedules of a worker, by queue and name."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], CodeSchedule] = {}

    def add(self, queue: str, name: str, arguments: Mapping[str, Any]) -> CodeSchedule:
        """Note a schedule. Raises InvalidSchedule, or ValueError when there is one of that name."""
        _check(name, arguments)
        if (queue, name) in self._all:
            raise ValueError(f"schedule {name!r} of queue {queue!r} is in the code already: a name is of one schedule")
        added = self._all[queue, name] = CodeSchedule(queue=queue, name=name, arguments=arguments)
        return added

    def of(self, queue: str) -> Sequence[CodeSchedule]:
        return [each for each in self._all.values() if each.queue == queue]

    def queues(self) -> list[str]:
        """Return the queues for which some schedule has a function."""
        return list(dict.fromkeys(each.queue for each in self._all.values() if each.call))

    def check_handled(self, handlers: Mapping[str, Handlers]) -> None:
        """Raise ValueError where nothing would process the jobs of a schedule. `handlers` are by queue."""
        for each in self._all.values():
            of_queue, kind = handlers.get(each.queue), each.arguments.get("kind")
            if each.call is None and (of_queue is None or of_queue.of_kind(kind) is None):
                place = f"{each.queue!r}, kind={kind!r}" if kind else f"{each.queue!r}"
                must = f"decorate one with it, or with @worker.job({place})"
                raise ValueError(f"schedule {each.name!r} of queue {each.queue!r} has no function: {must}")

    def handlers(self, queue: str, by_kind: Mapping[str | None, Handler]) -> Handlers:
        """Return the handlers of a queue, those of its schedules too.

        A schedule's function has `once` and `retry` of the handler without a kind, in whose place it is.
        """
        own = by_kind.get(None)
        options: dict[str, Any] = {"once": own.once, "retry": own.retry} if own else {}
        called = [(each.name, each.call) for each in self.of(queue) if each.call]
        of = {name: Handler(queue=queue, call=call, **options) for name, call in called}
        return Handlers(queue=queue, by_kind=by_kind, by_schedule=of)


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    """Raise InvalidSchedule before any request, where that can be known."""
    checked_schedule_name(name)
    try:
        from dueline.schedules.definition import Definition, check_fires
        from dueline.schedules.rule import Rule
    except ModuleNotFoundError:
        # Of dueline[schedules], which a worker need not have: the API refuses what is wrong when the worker starts.
        return
    try:
        payload = json.dumps(arguments["payload"], allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchedule(f"payload cannot be written as JSON: {error}") from None
    fields = {**arguments, "payload": payload}
    fields |= {each: _span(fields[each]) for each in ("every", "jitter")}
    rule = {each: fields.pop(each) for each in ("cron", "every", "zone", "start", "end", "count")}
    check_fires(Definition(rule=Rule(**rule), **fields).rule)


def _span(seconds: object) -> object:
    """Return a number of seconds, or a text such as 15m, as a timedelta, and all else as it is."""
    with suppress(ValueError):
        seconds = instant.seconds(seconds)
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return timedelta(seconds=seconds) if is_number else seconds  # type: ignore[arg-type]


# An API that does not answer keeps no job waiting for longer, and no signal to end.
_JOBS_WAIT_SECONDS = 4.0
_FIRST_WAIT_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 60.0
# A rollout may be under way for so long: what its new code has just put is not in the old code.
_ROLLOUT = timedelta(hours=24)


# Of each queue.
_Declared = Sequence[tuple[str, Sequence[CodeSchedule]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleSync:
    """Puts schedules that are in the code, and reports those of `owner` that are no longer in it, or deletes them.

    `scheduled` has those of each queue. Without an owner, nothing is looked for. What was put or changed within the
    last 24 hours is not deleted. `now` returns the time, `jitter` 0 to 1.
    """

    scheduled: _Declared
    schedules: "Callable[[str], Schedules]"
    owner: str | None
    prune: bool
    report: Report
    jitter: Callable[[], float]
    now: Callable[[], datetime]

    @contextmanager
    def run(self) -> Iterator[None]:
        """Declare them in a thread, within seconds. While AWS fails, it goes on trying as long as the context lasts.

        What is refused raises: InvalidSchedule, Forbidden, QueueNotFound, TooManySchedules or TooManyChanges.
        """
        first, ended = Future[None](), threading.Event()
        threading.Thread(target=self._begin, args=(first, ended.wait), name="declare", daemon=True).start()
        try:
            wait([first], _JOBS_WAIT_SECONDS)
            if not first.cancel():
                first.result()
            yield
        finally:
            ended.set()

    def _begin(self, first: Future[None], wait: Callable[[float], bool]) -> None:
        """Declare all, as often as that takes; `first` gets what the first time raises, if it is still awaited."""
        left, seconds = self.scheduled, _FIRST_WAIT_SECONDS
        try:
            left = self._declare(left)
            if first.set_running_or_notify_cancel():
                first.set_result(None)
            while left and not wait(seconds * (1 + self.jitter()) / 2):
                left = self._declare(left)
                seconds = min(_LONGEST_WAIT_SECONDS, seconds * 2)
        except Exception as fault:
            if not first.done() and first.set_running_or_notify_cancel():
                first.set_exception(fault)
                return
            # A thread that ended without a word would leave the schedules undeclared.
            what = "the schedules in the code are not declared, and are not tried again"
            self.report(error_event(fault, queue=left[0][0], what=what))

    def _declare(self, schedules_of: _Declared) -> _Declared:
        """Declare the schedules of each queue; return those that are to be tried again."""
        left = []
        for queue, of_queue in schedules_of:
            try:
                self._declare_of(queue, of_queue)
            except RETRYABLE as fault:
                what = "the schedules in the code are not declared yet, and are tried again"
                self.report(error_event(fault, queue=queue, what=what))
                left.append((queue, of_queue))
        return left

    def _declare_of(self, queue: str, declared: Sequence[CodeSchedule]) -> None:
        schedules = self.schedules(queue)
        for each in declared:
            schedules.put(each.name, **each.arguments, owner=self.owner)
        names = [each.name for each in declared]
        if names:
            self.report(Event(kind=EventKind.DECLARED, queue=queue, reason=f"schedules {', '.join(names)}"))
        if self.owner is None:
            return
        gone = [each for each in schedules.list() if each.owner == self.owner and each.name not in names]
        for undeclared in gone:
            done = self._pruned(schedules, undeclared) if self.prune else "goes on: delete it, or let the worker prune"
            reason = f"schedule {undeclared.name!r} of owner {self.owner!r} is no more in the code, and {done}"
            self.report(Event(kind=EventKind.UNDECLARED, queue=queue, reason=reason))

    def _pruned(self, schedules: "Schedules", gone: "Schedule") -> str:
        """Delete a schedule unless it was changed lately, or since it was listed; return what was done."""
        if gone.effective_from > self.now() - _ROLLOUT:
            return "was left alone: it was put or changed within the last 24 hours, perhaps by a rollout"
        try:
            schedules.delete(gone.name, if_match=gone.etag)
        except ScheduleChanged:
            return "was left alone: somebody has just changed it"
        return "was deleted"
