"""The schedules in a worker's code, and declaring them over the HTTP API when it starts."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dueline.core import instant
from dueline.core.job import checked_schedule_name
from dueline.errors import RETRYABLE
from dueline.worker.delivery import Event, EventKind, ReceivedJob, Report, error_event
from dueline.worker.handlers import Handler, Handlers

if TYPE_CHECKING:
    from dueline.client.schedules import Schedules

Call = Callable[[ReceivedJob], Any]


@dataclass(kw_only=True, slots=True, eq=False)
class CodeSchedule:
    """A schedule in the code: `arguments` are those of the client's `put`, `call` processes its jobs, if set.

    Raises InvalidSchedule.
    """

    queue: str
    name: str
    arguments: Mapping[str, Any]
    call: Call | None = None

    def __post_init__(self) -> None:
        _check(self.name, self.arguments)


def with_schedules(queue: str, by_kind: Mapping[str | None, Handler], schedules: Iterable[CodeSchedule]) -> Handlers:
    """Return the handlers of a queue, those of its schedules too.

    A schedule's function has `once` and `retry` of the handler without a kind, in whose place it is.
    """
    own = by_kind.get(None)
    options: dict[str, Any] = {"once": own.once, "retry": own.retry} if own else {}
    called = [(each.name, each.call) for each in schedules if each.queue == queue and each.call]
    of = {name: Handler(queue=queue, call=call, **options) for name, call in called}
    return Handlers(queue=queue, by_kind=by_kind, by_schedule=of)


def check_handled(schedules: Iterable[CodeSchedule], handlers: Mapping[str, Handlers]) -> None:
    """Raise ValueError where nothing would process the jobs of a schedule. `handlers` are by queue."""
    for each in schedules:
        of_queue, kind = handlers.get(each.queue), each.arguments.get("kind")
        if each.call is None and (of_queue is None or of_queue.of_kind(kind) is None):
            place = f"{each.queue!r}, kind={kind!r}" if kind else f"{each.queue!r}"
            must = f"decorate one with it, or with @worker.job({place})"
            raise ValueError(f"schedule {each.name!r} of queue {each.queue!r} has no function: {must}")


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    """Raise InvalidSchedule before any request, where that can be known."""
    checked_schedule_name(name)
    try:
        from dueline.schedules.definition import Definition, check_fires, payload_text
        from dueline.schedules.rule import Rule
    except ModuleNotFoundError:
        # Of dueline[schedules], which a worker need not have: the API refuses what is wrong when the worker starts.
        return
    fields = {**arguments, "payload": payload_text(arguments["payload"])}
    fields |= {each: _span(fields[each]) for each in ("every", "jitter")}
    rule = {each: fields.pop(each) for each in ("cron", "every", "zone", "start", "end", "count")}
    check_fires(Definition(rule=Rule(**rule), **fields).rule)


def _span(seconds: object) -> object:
    """Return a number of seconds, or a text such as 15m, as a timedelta, and all else as it is."""
    with suppress(ValueError, OverflowError):
        seconds = instant.seconds(seconds)
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        return timedelta(seconds=seconds) if is_number else seconds  # type: ignore[arg-type]
    return seconds


_RETRY_SECONDS = 20.0


class ScheduleSync:
    """Puts the schedules that are in the code. `schedules` returns those of a queue that the client has."""

    def __init__(self, schedules: "Callable[[str], Schedules]", *, report: Report, jitter: Callable[[], float]) -> None:
        self._schedules, self._report, self._jitter = schedules, report, jitter

    @contextmanager
    def run(self, declared: Sequence[CodeSchedule]) -> Iterator[None]:
        """Put them. While AWS fails, go on trying in a thread as long as the context lasts: jobs need not wait for it.

        What is refused raises: InvalidSchedule, Forbidden, QueueNotFound, TooManySchedules or TooManyChanges.
        """
        ended = threading.Event()
        if left := self._put(declared):
            threading.Thread(target=self._retry, args=(left, ended), name="declare", daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _put(self, declared: Sequence[CodeSchedule]) -> Sequence[CodeSchedule]:
        """Return those that are to be tried again: as one waits for AWS, so would the next."""
        for number, each in enumerate(declared):
            try:
                self._schedules(each.queue).put(each.name, **each.arguments)
            except RETRYABLE as fault:
                self._report_error(fault, each, "is not declared yet, and is tried again")
                return declared[number:]
            self._report(Event(kind=EventKind.DECLARED, queue=each.queue, reason=f"schedule {each.name}"))
        return []

    def _retry(self, left: Sequence[CodeSchedule], ended: threading.Event) -> None:
        while left and not ended.wait(_RETRY_SECONDS * (1 + self._jitter()) / 2):
            try:
                left = self._put(left)
            except Exception as fault:
                # A thread that ended without a word would leave the schedules undeclared.
                self._report_error(fault, left[0], "is not declared, nor is what follows it in the code")
                return

    def _report_error(self, fault: Exception, schedule: CodeSchedule, what: str) -> None:
        self._report(error_event(fault, queue=schedule.queue, what=f"schedule {schedule.name} {what}"))
