"""Processes that take turns at every call of a port, on one virtual clock."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from greenlet import getcurrent, greenlet


class Task(greenlet):
    """A greenlet that runs until it suspends itself. `then` is called when it ends."""

    def __init__(self, body: Callable[[], object]) -> None:
        super().__init__(body)
        self.then: Callable[[], None] = lambda: None

    def resume(self) -> None:
        """Run until it suspends itself, or to its end."""
        self.parent = getcurrent()
        self.switch()
        if self.dead:
            self.then()


class Process:
    """One task or more, by a clock that may differ from the true one by `skew` seconds, or `most_skew` before."""

    def __init__(self, name: str, body: Callable[["Process"], None], scheduler: "Scheduler", *, skew: float) -> None:
        self.name, self.skew, self.most_skew = name, skew, skew
        self.main = Task(lambda: body(self))
        self._scheduler = scheduler

    def spread(self, call: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Make a call for each item, each in a task of its own; return what they return, in the items' order.

        Raises the first error of them, when all have ended.
        """
        batch = list(items)
        if len(batch) <= 1:
            return [call(each) for each in batch]
        answers, errors = dict[int, Any](), list[BaseException]()

        def attempt(number: int) -> None:
            try:
                answers[number] = call(batch[number])
            except BaseException as error:
                errors.append(error)

        self._scheduler.join([Task(partial(attempt, number)) for number in range(len(batch))])
        if errors:
            raise errors[0]
        return [answers[number] for number in range(len(batch))]

    def set_clock(self, skew: float) -> None:
        self.skew, self.most_skew = skew, max(skew, self.most_skew)

    # A Clock.

    def now(self) -> datetime:
        return self._scheduler.now() + timedelta(seconds=self.skew)

    def monotonic(self) -> float:
        return self._scheduler.elapsed

    def sleep(self, seconds: float) -> None:
        self._scheduler.wake(current(), after=seconds)
        suspend()


def current() -> Task:
    task = getcurrent()
    assert isinstance(task, Task)
    return task


def suspend() -> None:
    """Let others run; return at this task's next turn."""
    parent = getcurrent().parent
    assert parent is not None
    parent.switch()


class Scheduler:
    """Decides whose turn it is, and is the true clock. `choose` picks one of so many, 0 being who ran last."""

    def __init__(self, start: datetime, choose: Callable[[int], int]) -> None:
        self.elapsed = 0.0
        self._start = start
        self._choose = choose
        self._ready: list[Task] = []
        self._asleep: list[tuple[float, int, Task]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds

    def wake(self, task: Task, *, after: float) -> None:
        """Give a task its next turn in so many seconds."""
        heappush(self._asleep, (self.elapsed + after, next(self._order), task))

    def yield_turn(self) -> None:
        """Let any other task that is ready go first."""
        if self._ready:
            self._ready.insert(0, current())
            suspend()

    def join(self, others: Sequence[Task]) -> None:
        """Start other tasks, and return when the last of them has ended."""
        left, waiting = len(others), current()

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._ready.insert(0, waiting)

        for other in others:
            other.then = ended
            self.wake(other, after=0)
        if others:
            suspend()

    def run(self, *, until: float = math.inf) -> None:
        """Let time pass until every process has ended, or for so many seconds from the beginning."""
        while self._ready or (self._asleep and self._asleep[0][0] <= until):
            self._wake_up()
            chosen = self._choose(len(self._ready)) if len(self._ready) > 1 else 0
            self._ready.pop(chosen).resume()
        if until < math.inf:
            self.elapsed = until

    def _wake_up(self) -> None:
        if not self._ready:
            self.elapsed = max(self.elapsed, self._asleep[0][0])
        while self._asleep and self._asleep[0][0] <= self.elapsed:
            self._ready.append(heappop(self._asleep)[2])
