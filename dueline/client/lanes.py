"""Lanes: calls that wait to travel together, and which of their callers sends them."""

import os
import threading
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dueline.client.api import MOST_AT_ONCE
from dueline.client.http_api import MOST_BYTES
from dueline.errors import DuelineError, Unavailable
from dueline.model.message import batches

# How many requests of tasks are under way at once; threads send their own.
_MOST_SENDERS = 32

A = TypeVar("A")
B = TypeVar("B")


@dataclass(eq=False, kw_only=True, slots=True)
class Call(Generic[A, B]):
    """One caller's item, of `size` bytes, in the lane `key`.

    `turn` is done once it is to leave, or has left, and `answer` once it is answered: with nothing, where its caller is
    to ask alone. `batch` is what this caller is to send. `for_others` tells whether it may send what others gave: the
    main thread gets the exceptions of signals, at any moment.
    """

    item: A
    size: int
    key: Hashable
    for_others: bool
    turn: "Future[None]" = field(default_factory=Future)
    answer: "Future[B | DuelineError | None]" = field(default_factory=Future)
    batch: "list[Call[A, B]]" = field(default_factory=list)

    def __post_init__(self) -> None:
        # What runs cannot be cancelled, by an event loop that stops waiting for it.
        self.turn.set_running_or_notify_cancel()
        self.answer.set_running_or_notify_cancel()

    def tell(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)


class _Lane(Generic[A, B]):
    """The calls that wait, and how many requests are under way."""

    def __init__(self) -> None:
        self.waiting: list[Call[A, B]] = []
        self.bytes = 0
        self.under_way = 0

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= MOST_AT_ONCE or self.bytes >= MOST_BYTES

    def add(self, call: Call[A, B]) -> None:
        self.waiting.append(call)
        self.bytes += call.size

    def remove(self, calls: list[Call[A, B]]) -> None:
        gone = set(map(id, calls))
        self.waiting = [each for each in self.waiting if id(each) not in gone]
        self.bytes = sum(each.size for each in self.waiting)

    def batch_of(self, call: Call[A, B]) -> list[Call[A, B]]:
        """Return a call and as many others as one request takes, in the order in which they came."""
        others = (each for each in self.waiting if each is not call)
        return next(batches([call, *others], size=lambda each: each.size, most=MOST_AT_ONCE, most_bytes=MOST_BYTES))


class Lanes(Generic[A, B]):
    """The lanes of one process, each while anything is in it. Threads share them.

    `senders` has the threads that send what tasks of event loops are to send; there are none before the first of these.
    """

    def __init__(self) -> None:
        self.senders = ThreadPoolExecutor(_MOST_SENDERS, thread_name_prefix="dueline-sender")
        self._lock = threading.Lock()
        self._lanes: dict[Hashable, _Lane[A, B]] = {}

    def join(self, call: Call[A, B]) -> None:
        """Let a call wait in its lane. If nothing is there or under way, or it makes the lane full, its turn is now."""
        with self._lock:
            lane = self._lanes.setdefault(call.key, _Lane())
            is_alone = not lane.waiting and not lane.under_way
            was_full = lane.is_full
            lane.add(call)
            if is_alone or lane.is_full > was_full:
                call.tell()

    def take(self, call: Call[A, B], *, alone: bool = False) -> bool:
        """Give a call that waits its `batch` to send; return False where another caller is to send it.

        `alone`, the batch is this call, and no other caller is to send it.
        """
        with self._lock:
            lane = self._lanes.get(call.key)
            if lane is None or call not in lane.waiting:
                return False
            batch = [call] if alone else lane.batch_of(call)
            if len(batch) > 1 and not call.for_others:
                batch[1].tell()
                return False
            lane.remove(batch)
            lane.under_way += 1
            call.batch = batch
            for each in batch + (lane.waiting[:1] if lane.is_full else []):
                each.tell()
            return True

    def waits(self, call: Call[A, B]) -> bool:
        with self._lock:
            return call.key in self._lanes and call in self._lanes[call.key].waiting

    def end(self, call: Call[A, B]) -> None:
        """Note that a caller waits no more, and sends no more. What it was to send is answered by now, or fails."""
        with self._lock:
            lane = self._lanes.get(call.key)
            if lane is None:
                return
            lane.remove([call])
            for each in call.batch:
                if not each.answer.done():
                    each.answer.set_result(Unavailable("the request was broken off: it may have been carried out"))
            lane.under_way -= 1 if call.batch else 0
            call.batch = []
            if lane.waiting and not lane.under_way:
                lane.waiting[0].tell()
            elif not lane.waiting and not lane.under_way:
                # Traces are among the keys: most of them come once.
                del self._lanes[call.key]


class LanesOfProcess(Generic[A, B]):
    """The lanes of this process: a forked child has none of the threads that would send its parent's calls."""

    def __init__(self) -> None:
        self._made: dict[int, Lanes[A, B]] = {}

    def __call__(self) -> Lanes[A, B]:
        process = os.getpid()
        if process not in self._made:
            self._made.setdefault(process, Lanes())
        return self._made[process]
