"""A queue from its consumers' side: at least once, in any order, and again after the visibility timeout."""

from collections.abc import Sequence
from datetime import datetime

from dueline.memory import MemoryQueue
from dueline.model.job import Job
from dueline.model.message import Message
from dueline.ports import Clock


class Mail:
    """What waits in a queue. Messages are named by their place among all that ever were in it."""

    def __init__(self, queue: MemoryQueue, *, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._hidden: dict[int, float] = {}
        self._deleted: set[int] = set()
        self._jobs: dict[int, Job] = {}
        self._first: dict[int, datetime] = {}

    def message(self, place: int) -> Message:
        return self._queue.deliveries[place].message

    def job(self, place: int) -> Job:
        """Return the job that a message carries, read once: messages do not change."""
        if place not in self._jobs:
            self._jobs[place] = self.message(place).job()
        return self._jobs[place]

    def waiting(self) -> list[int]:
        """Return the messages that are visible now."""
        now, since = self._clock.now(), self._clock.monotonic()
        return [place for place in self.held() if self._is_visible(place, since, now)]

    def held(self) -> list[int]:
        """Return the messages that are not deleted."""
        return [place for place in range(len(self._queue.deliveries)) if place not in self._deleted]

    def receive(self, *, waiting: Sequence[int], again: Sequence[int] = (), seconds: float) -> list[int]:
        """Hide messages for so long, and return them: of those that wait, and of all that ever were, by number."""
        left, ever = self.waiting(), range(len(self._queue.deliveries))
        chosen = [left[number] for number in waiting if number < len(left)]
        chosen += [ever[number] for number in again if number < len(ever)]
        for place in chosen:
            self._hidden[place] = self._clock.monotonic() + seconds
            self._first.setdefault(place, self._clock.now())
        return list(dict.fromkeys(chosen))

    def first_received(self, place: int) -> datetime:
        return self._first[place]

    def hide(self, place: int, seconds: float) -> None:
        self._hidden[place] = self._clock.monotonic() + seconds

    def delete(self, place: int) -> None:
        self._deleted.add(place)

    def _is_visible(self, place: int, since: float, now: datetime) -> bool:
        return self._hidden.get(place, 0) <= since and self._queue.deliveries[place].visible <= now
