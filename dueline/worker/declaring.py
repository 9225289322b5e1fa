"""Declare the schedules in a worker's code when it starts, over the HTTP API."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from dueline.errors import RETRYABLE, ScheduleChanged
from dueline.worker.scheduled import Scheduled
from dueline.worker.watch.event import Event, Kind, Report, trouble

_FIRST_WAIT_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 60.0


class NamedSchedule(Protocol):
    """A schedule as a list has it."""

    @property
    def name(self) -> str: ...

    @property
    def owner(self) -> str | None: ...

    @property
    def etag(self) -> str: ...


class Schedules(Protocol):
    """The schedules of one queue of the deployment."""

    def put(self, name: str, **given: Any) -> object:
        """Create a schedule, or change it to this; one that is so already stays as it is."""

    def list(self) -> Iterable[NamedSchedule]:
        """Return those that there are."""

    def delete(self, name: str, *, if_match: str) -> object:
        """Delete one that is as its etag says. Raises ScheduleChanged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaring:
    """Puts schedules that are in the code, and tells or deletes those of `owner` that are there no more.

    `scheduled` has those of each queue. Without an owner, nothing is looked for. `jitter` returns 0 to 1.
    """

    scheduled: Sequence[tuple[str, Sequence[Scheduled]]]
    schedules: Callable[[str], Schedules]
    owner: str | None
    prune: bool
    report: Report
    jitter: Callable[[], float]

    @contextmanager
    def declared(self) -> Iterator[None]:
        """Declare them. While AWS fails, go on trying in a thread, for as long as the context lasts.

        What is refused raises: InvalidSchedule, Forbidden, QueueNotFound, TooManySchedules or TooManyChanges.
        """
        left, ended = self._declare(self.scheduled), threading.Event()
        if left:
            threading.Thread(target=self._go_on, args=(left, ended.wait), name="declare", daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _go_on(self, left: Sequence[tuple[str, Sequence[Scheduled]]], wait: Callable[[float], bool]) -> None:
        seconds = _FIRST_WAIT_SECONDS
        while left and not wait(seconds * (1 + self.jitter()) / 2):
            try:
                left = self._declare(left)
            except Exception as fault:
                # A thread that ended without a word would leave the schedules undeclared, and nobody the wiser.
                what = "the schedules in the code are not declared, and are not tried again"
                self.report(trouble(fault, queue=left[0][0], what=what))
                return
            seconds = min(_LONGEST_WAIT_SECONDS, seconds * 2)

    def _declare(self, wanted: Sequence[tuple[str, Sequence[Scheduled]]]) -> list[tuple[str, Sequence[Scheduled]]]:
        """Declare the schedules of each queue; return those that are to be tried again."""
        left = []
        for queue, of_queue in wanted:
            try:
                self._declare_of(queue, of_queue)
            except RETRYABLE as fault:
                what = "the schedules in the code are not declared yet, and are tried again"
                self.report(trouble(fault, queue=queue, what=what))
                left.append((queue, of_queue))
        return left

    def _declare_of(self, queue: str, wanted: Sequence[Scheduled]) -> None:
        schedules = self.schedules(queue)
        for each in wanted:
            schedules.put(each.name, **each.given, owner=self.owner)
        names = [each.name for each in wanted]
        if names:
            self.report(Event(kind=Kind.DECLARED, queue=queue, reason=f"schedules {', '.join(names)}"))
        if self.owner is None:
            return
        gone = [found for found in schedules.list() if found.owner == self.owner and found.name not in names]
        for found in gone:
            done = self._pruned(schedules, found) if self.prune else "goes on: delete it, or let the worker prune"
            reason = f"schedule {found.name!r} of owner {self.owner!r} is no more in the code, and {done}"
            self.report(Event(kind=Kind.UNDECLARED, queue=queue, reason=reason))

    def _pruned(self, schedules: Schedules, gone: NamedSchedule) -> str:
        """Delete a schedule unless somebody has changed it since it was listed; return what was done."""
        try:
            schedules.delete(gone.name, if_match=gone.etag)
        except ScheduleChanged:
            return "was left alone: somebody has just changed it"
        return "was deleted"
