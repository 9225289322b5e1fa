"""What a worker needs of one queue."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from dueline.core.ports import Clock, Pointer, Queue, QueueReader, Table
from dueline.core.queue_settings import LEAST_VISIBILITY_TIMEOUT, WorkSettings
from dueline.worker.delivery import Event, EventKind, Report, error_event


class Once(Protocol):
    """Remembers which jobs had their effect, so that none has it twice."""

    def __call__(self, key: str, effect: Callable[[], None]) -> None:
        """Call `effect`, unless an earlier call with that key returned.

        What `effect` raises is raised, and then it may be called again. Raises Interrupted when an earlier call began
        and is not known to have ended; Throttled or Unavailable.
        """


class Locks(Protocol):
    """The locks of one queue's schedules. A job has one until an instant, or until it frees it.

    A call whose answer was lost may be repeated: the lock is the same job's.
    """

    def take(self, schedule: str, *, job: str, now: datetime, until: datetime) -> bool:
        """Let a job have a lock until an instant, unless another has it at `now`; return whether it has it.

        A job may take its own again, until another instant. Raises Throttled or Unavailable.
        """

    def free(self, schedule: str, *, job: str) -> None:
        """Free a lock if it is that job's. Raises as `take`."""


@dataclass(kw_only=True, slots=True)
class QueueContext:
    """A queue as one process sees it: its levels, the most urgent first, and what processing its jobs takes.

    `read_payload` fetches a payload that is kept in S3. `clock` is never ahead of AWS's own, and behind it by
    `behind()` seconds at most. `reload` connects to the queue as it is published now; without it, settings never
    change. Others read `settings` again each time, as they may change. What happens to its jobs goes to `report`.
    """

    settings: WorkSettings
    levels: tuple[QueueReader, ...]
    dead_letters: Queue
    table: Table
    read_payload: Callable[[Pointer], str]
    once: Once
    locks: Locks
    clock: Clock
    report: Report
    behind: Callable[[], float] = lambda: 0.0
    reload: Callable[[], "QueueContext"] | None = None

    @property
    def queue(self) -> str:
        return self.settings.queue.name

    def check(self) -> None:
        """Raise ValueError when a worker cannot process a queue with these settings."""
        hidden = self.settings.visibility_timeout
        if hidden < LEAST_VISIBILITY_TIMEOUT:
            must = f"for a worker it must be {LEAST_VISIBILITY_TIMEOUT} or more"
            raise ValueError(f"visibility_timeout of queue {self.queue} is {hidden}: {must}")

    def report_error(self, fault: BaseException, what: str = "") -> None:
        self.report(error_event(fault, queue=self.queue, what=what))

    def refresh(self) -> None:
        """Read the published settings, and use them from now on. If that fails, it is reported, and nothing changes.

        New levels are polled. Levels that are gone from the settings are not, but messages that were received from them
        are still acknowledged there.
        """
        if self.reload is None:
            return
        try:
            published = self.reload()
            published.check()
        except Exception as fault:
            self.report_error(fault, "its published settings were not applied")
            return
        if published.settings != self.settings:
            self.settings = published.settings
            self.levels = (*self.levels, *published.levels[len(self.levels) :])
            self.report(Event(kind=EventKind.CHANGED, queue=self.queue))
