"""Pace: how many items to put into one call, found by trying: more while answers are fast, fewer when they are slow."""

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

from dueline.model.message import batches

# One call of these is answered in a second or two where all is well, and several are under way at once.
FIRST_ITEMS = 100
LEAST_ITEMS = 10
STEP_ITEMS = 25
# A function of the API has 20 s, and begins nothing after half of them.
SLOW_SECONDS = 5.0

A = TypeVar("A")


class Pace:
    """How many items the next call gets, up to `most`, and whether there is progress. Lanes share it.

    It begins small and doubles while answers are fast. A call that was slow or had too many items halves it; after the
    first of these it grows by a fixed step only (additive increase, multiplicative decrease).
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._items = min(FIRST_ITEMS, most)
        self._has_met_its_limit = False
        self._lock = threading.Lock()
        self._renewals = 0
        self._failing_since: float | None = None

    @property
    def items(self) -> int:
        """How many items to put into a call."""
        return self._items

    @property
    def renewals(self) -> int:
        """How often patience was renewed: by a call that finished something, or that made later calls smaller."""
        return self._renewals

    @property
    def failing_since(self) -> float | None:
        """When (monotonic) the first call began that failed as a whole since patience was last renewed, if any."""
        return self._failing_since

    def note(self, asked: int, *, finished: int, too_much: bool, begun: float, now: float) -> None:
        """Note how a call of `asked` items went: how many it finished, and whether it had too many (`too_much`)."""
        with self._lock:
            before = self._items
            self._adjust(asked, is_slow=too_much or now - begun > SLOW_SECONDS)
            if finished or self._items < before:
                self._renewals += 1
                self._failing_since = None
            elif self._failing_since is None:
                self._failing_since = begun

    def _adjust(self, asked: int, *, is_slow: bool) -> None:
        if is_slow:
            self._has_met_its_limit = True
            # Calls that were under way together halve it once; one that was much smaller says nothing of its size.
            if 2 * asked >= self._items:
                self._items = min(self._items, max(asked // 2, LEAST_ITEMS))
        elif asked >= self._items:
            self._items = min(self._most, asked + (STEP_ITEMS if self._has_met_its_limit else asked))

    def cut(self, items: Iterable[A], *, size: Callable[[A], int], most_bytes: int) -> Iterator[list[A]]:
        """Cut items, in order, into batches of the present size; an item is read when its batch is asked for."""
        iterator = iter(items)
        for first in iterator:
            some = chain([first], islice(iterator, max(self._items, FIRST_ITEMS) - 1))
            yield from batches(some, size=size, most=self._most, most_bytes=most_bytes)
