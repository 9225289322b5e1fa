"""The schedules that a worker's code has, and which function processes the jobs of each."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from dueline.errors import InvalidSchedule
from dueline.model.nominal import checked_name
from dueline.worker.handler_runner import Handler
from dueline.worker.received import ReceivedJob

Call = Callable[[ReceivedJob], Any]


@dataclass(kw_only=True, slots=True, eq=False)
class Scheduled:
    """A schedule in the code: `given` are the arguments of the client's `put`, `call` processes its jobs, if set."""

    queue: str
    name: str
    given: Mapping[str, Any]
    call: Call | None = None


class ScheduledInCode:
    """The schedules of a worker, by queue and name."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], Scheduled] = {}

    def add(self, queue: str, name: str, given: Mapping[str, Any]) -> Scheduled:
        """Note a schedule. Raises InvalidSchedule, or ValueError when there is one of that name."""
        _check(name, given)
        if (queue, name) in self._all:
            raise ValueError(f"schedule {name!r} of queue {queue!r} is in the code already: a name is of one schedule")
        added = self._all[queue, name] = Scheduled(queue=queue, name=name, given=given)
        return added

    def of(self, queue: str) -> Sequence[Scheduled]:
        return [each for each in self._all.values() if each.queue == queue]

    def queues(self) -> list[str]:
        """Return the queues for which some schedule has a function."""
        return list(dict.fromkeys(each.queue for each in self._all.values() if each.call))

    def check_queues(self, handled: Sequence[str]) -> None:
        """Raise ValueError where nothing would process the jobs of a schedule."""
        for each in self._all.values():
            if each.queue not in handled:
                must = f"decorate one with it, or with @worker.job({each.queue!r})"
                raise ValueError(f"schedule {each.name!r} of queue {each.queue!r} has no function: {must}")

    def handler(self, queue: str, own: Handler | None) -> Handler:
        """Return a handler that gives the jobs of each schedule to its function, and all others to `own`."""
        calls: dict[str, Call] = {each.name: each.call for each in self.of(queue) if each.call}
        if not calls and own:
            return own
        other: Call = own.call if own else _no_function

        def call(job: ReceivedJob) -> Any:
            return calls.get(job.schedule or "", other)(job)

        return replace(own, call=call) if own else Handler(queue=queue, call=call)


def _no_function(job: ReceivedJob) -> None:
    made = f"jobs of schedule {job.schedule!r}" if job.schedule else "jobs that no schedule made"
    raise LookupError(f"this worker has no function for {made}: add @worker.job({job.queue!r})")


def _check(name: str, given: Mapping[str, Any]) -> None:
    """Raise InvalidSchedule before any request, where that can be known."""
    checked_name(name)
    try:
        from dueline.schedules.definition import Definition
        from dueline.schedules.rule import Rule
    except ModuleNotFoundError:
        # Of dueline[schedules], which a worker need not have: the API refuses what is wrong when the worker starts.
        return
    known = {**given, "payload": _json(given["payload"])}
    known |= {each: _span(known[each]) for each in ("every", "jitter")}
    rule = {each: known.pop(each) for each in ("cron", "every", "zone", "start", "end", "count")}
    Definition(rule=Rule(**rule), **known)


def _json(payload: object) -> str:
    try:
        return json.dumps(payload, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchedule(f"payload cannot be written as JSON: {error}") from None


def _span(seconds: object) -> object:
    """Return a number of seconds as a timedelta, and all else as it is."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return timedelta(seconds=seconds) if is_number else seconds  # type: ignore[arg-type]
