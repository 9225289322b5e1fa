"""Processes that take turns at every call of a port, on one virtual clock."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from greenlet import getcurrent, greenlet


class Thread(greenlet):
    """Something that runs by itself until it stands back. `then` is called at its end."""

    def __init__(self, body: Callable[[], object]) -> None:
        super().__init__(body)
        self.then: Callable[[], None] = lambda: None

    def go_on(self) -> None:
        """Run until it stands back, or to its end."""
        self.parent = getcurrent()
        self.switch()
        if self.dead:
            self.then()


class Process:
    """One thread or more, by a clock that may differ from the true one by `skew` seconds."""

    def __init__(self, name: str, body: Callable[["Process"], None], turns: "Turns", *, skew: float) -> None:
        self.name, self.skew = name, skew
        self.main = Thread(lambda: body(self))
        self._turns = turns

    def spread(self, call: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Make a call for each item, each in a thread of its own; return what they return, in the items' order.

        Raises the first error of them, when all have ended.
        """
        given = list(items)
        if len(given) <= 1:
            return [call(each) for each in given]
        answers, errors = dict[int, Any](), list[BaseException]()

        def attempt(number: int) -> None:
            try:
                answers[number] = call(given[number])
            except BaseException as error:
                errors.append(error)

        self._turns.wait_for([Thread(partial(attempt, number)) for number in range(len(given))])
        if errors:
            raise errors[0]
        return [answers[number] for number in range(len(given))]

    # What it knows of time: a Clock.

    def now(self) -> datetime:
        return self._turns.now() + timedelta(seconds=self.skew)

    def monotonic(self) -> float:
        return self._turns.elapsed

    def sleep(self, seconds: float) -> None:
        self._turns.wake(current(), after=seconds)
        stand_back()


def current() -> Thread:
    thread = getcurrent()
    assert isinstance(thread, Thread)
    return thread


def stand_back() -> None:
    """Let others go on; return when the turn is this thread's again."""
    parent = getcurrent().parent
    assert parent is not None
    parent.switch()


class Turns:
    """Whose turn it is, and what time it truly is: a Clock. `choose` picks one of so many, 0 being who ran last."""

    def __init__(self, start: datetime, choose: Callable[[int], int]) -> None:
        self.elapsed = 0.0
        self._start = start
        self._choose = choose
        self._ready: list[Thread] = []
        self._asleep: list[tuple[float, int, Thread]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds

    def wake(self, thread: Thread, *, after: float) -> None:
        """Give a thread its next turn in so many seconds."""
        heappush(self._asleep, (self.elapsed + after, next(self._order), thread))

    def take_turn(self) -> None:
        """Let any other thread that is ready go first."""
        if self._ready:
            self._ready.insert(0, current())
            stand_back()

    def wait_for(self, others: Sequence[Thread]) -> None:
        """Begin other threads, and go on when the last of them has ended."""
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
            stand_back()

    def run(self) -> None:
        """Let time pass until every process has ended."""
        while self._asleep or self._ready:
            self._wake_up()
            chosen = self._choose(len(self._ready)) if len(self._ready) > 1 else 0
            self._ready.pop(chosen).go_on()

    def _wake_up(self) -> None:
        if not self._ready:
            self.elapsed = max(self.elapsed, self._asleep[0][0])
        while self._asleep and self._asleep[0][0] <= self.elapsed:
            self._ready.append(heappop(self._asleep)[2])
