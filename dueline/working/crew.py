"""All lines of one process, from their start to their end."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dueline.ports import Clock
from dueline.working.line import Line

_LOOK_SECONDS = 0.1


class Ending:
    """When a worker ends: asked once, it takes its grace; asked twice, it does not.

    No lock is taken, so that a signal may ask.
    """

    def __init__(self) -> None:
        self._asked = 0

    def ask(self) -> None:
        self._asked += 1

    @property
    def is_asked(self) -> bool:
        return self._asked > 0

    @property
    def is_hurried(self) -> bool:
        return self._asked > 1


class Crew:
    """The lines of a process, by queue."""

    def __init__(self, lines: Mapping[str, Line], *, clock: Clock) -> None:
        self._lines = lines
        self._clock = clock

    def work(self, ending: Ending, *, grace: float) -> bool:
        """Work until it is to end, then give what runs `grace` seconds; tell whether all had ended.

        Raises Throttled or Unavailable when it cannot begin.
        """
        for line in self._lines.values():
            line.start()
        while not ending.is_asked:
            self._clock.sleep(_LOOK_SECONDS)
        for line in self._lines.values():
            line.stop()
        until = self._clock.monotonic() + grace
        while self._is_busy() and not ending.is_hurried and self._clock.monotonic() < until:
            self._clock.sleep(_LOOK_SECONDS)
        ended = [line.finish() for line in self._lines.values()]
        return all(ended)

    def ages(self) -> dict[str, float]:
        """Return how many seconds ago each queue was last asked for messages."""
        now = self._clock.monotonic()
        return {queue: now - line.turned for queue, line in self._lines.items()}

    def _is_busy(self) -> bool:
        return any(line.is_busy for line in self._lines.values())


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread while the context lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="coroutines", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
