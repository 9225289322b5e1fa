"""Simulated time, in which processes wait as blocking code does: each is a greenlet.

Why not SimPy: its processes are generators, and the core, which blocks, is none.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from greenlet import getcurrent, greenlet

START = datetime(2026, 1, 1, tzinfo=UTC)


class Turns:
    """Who goes on when. `elapsed` is the time, in seconds since the beginning."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self._waiting: list[tuple[float, int, Any]] = []
        self._order = count()
        self._main: Any = None

    def start(self, body: Callable[[], object], *, after: float = 0.0) -> None:
        """Begin a process in so many seconds."""
        self.wake(greenlet(body), after=after)

    def wake(self, process: Any, *, after: float = 0.0) -> None:
        """Let a process that stood back go on in so many seconds."""
        heappush(self._waiting, (self.elapsed + after, next(self._order), process))

    def sleep(self, seconds: float) -> None:
        """Let the process that calls this wait."""
        self.wake(getcurrent(), after=seconds)
        self.stand_back()

    def stand_back(self) -> None:
        """Let others go on until this process is woken."""
        self._main.switch()

    def run(self, *, until: float) -> None:
        """Let time pass."""
        self._main = getcurrent()
        while self._waiting and self._waiting[0][0] <= until:
            self.elapsed, _, process = heappop(self._waiting)
            if not process:
                process.parent = self._main
            process.switch()
        self.elapsed = until


class Environment:
    """Where a function runs: a Clock, a share of a CPU for all its lanes together, and lanes to spread calls over."""

    def __init__(self, turns: Turns, *, vcpu: float, lanes: int) -> None:
        self._turns = turns
        self._vcpu = vcpu
        self._lanes = lanes
        self._idle_from = 0.0

    def with_lanes(self, lanes: int) -> "Environment":
        return Environment(self._turns, vcpu=self._vcpu, lanes=lanes)

    def now(self) -> datetime:
        return START + timedelta(seconds=self._turns.elapsed)

    def monotonic(self) -> float:
        return self._turns.elapsed

    def sleep(self, seconds: float) -> None:
        self._turns.sleep(seconds)

    def compute(self, seconds: float) -> None:
        """Use so many seconds of a whole vCPU, after whoever came before."""
        self._idle_from = max(self._idle_from, self._turns.elapsed) + seconds / self._vcpu
        self._turns.sleep(self._idle_from - self._turns.elapsed)

    def spread(self, call: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Make a call for each item, as many at once as there are lanes; return the answers in the items' order."""
        given = list(items)
        if len(given) <= 1:
            return [call(each) for each in given]
        answers: list[Any] = [None] * len(given)
        numbers, left, waiting = iter(range(len(given))), min(self._lanes, len(given)), getcurrent()

        def lane() -> None:
            nonlocal left
            for number in numbers:
                answers[number] = call(given[number])
            left -= 1
            if not left:
                self._turns.wake(waiting)

        for _ in range(left):
            self._turns.start(lane)
        self._turns.stand_back()
        return answers
