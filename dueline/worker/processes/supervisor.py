"""Keep several worker processes at work, and end them together."""

import signal
from collections.abc import Callable
from typing import Any

from dueline.ports import Clock
from dueline.worker.processes.place import Place
from dueline.worker.processes.process import Process
from dueline.worker.runner import Ending
from dueline.worker.watch.event import ProcessEvent
from dueline.worker.watch.health import health_of_all

_LOOK_SECONDS = 0.1
# What ended by SIGTERM was still starting, and had no jobs.
_ENDED_AT_ITS_START = 128 + signal.SIGTERM


class Supervisor:
    """Starts so many processes, and another one for each that dies: after a second, later if that dies again, too.

    `start` starts the process of a number, from 1 on. `jitter` returns 0 to 1.
    """

    def __init__(
        self,
        start: Callable[[int], Process],
        *,
        processes: int,
        clock: Clock,
        jitter: Callable[[], float],
        report: Callable[[ProcessEvent], None],
    ) -> None:
        parts: dict[str, Any] = {"start": start, "clock": clock, "jitter": jitter, "report": report}
        self._first, *_ = self._places = [Place(number, **parts) for number in range(1, processes + 1)]
        self._clock = clock
        self._has_begun = self._is_ending = False

    def run(self, ending: Ending) -> int:
        """Keep them at work until asked to end, then let them drain; return the highest of their exit codes.

        The first one starts alone. If it ends before it has begun to work, its exit code is returned: what is wrong
        with the code, or its settings, ends all, and is told once. Raises OSError if it cannot be started.
        """
        code = None
        try:
            while code is None and not ending.is_asked:
                code = self._look()
                self._clock.sleep(_LOOK_SECONDS)
        finally:
            ended = self._end(ending)
        return ended if code is None or ending.is_asked else code

    def _look(self) -> int | None:
        """Start what is to be started; return the exit code of the first process if it could not begin."""
        for place in self._places:
            if place.is_to_start and (self._has_begun or place is self._first):
                place.start(at_any_rate=not self._has_begun)
            code = place.look()
            self._has_begun |= place.has_begun
            if code is not None and not self._has_begun:
                place.note_end(code)
                return code
            if code is not None:
                place.note_death(code)
        return None

    def _end(self, ending: Ending) -> int:
        """End all with their grace, or at once if asked twice; return the highest exit code."""
        self._is_ending, is_hurried, codes = True, False, {0}
        for place in self._places:
            place.end()
        while any(place.process for place in self._places):
            if ending.is_hurried and not is_hurried:
                is_hurried = True
                for place in self._places:
                    place.hurry()
            for place in self._places:
                code = place.look()
                if code is not None:
                    place.note_end(code)
                    codes.add(code)
            self._clock.sleep(_LOOK_SECONDS)
        return max(codes - {_ENDED_AT_ITS_START})

    def health(self) -> dict[str, Any]:
        """Return the health of all processes. Once they are told to end, those that have are not missed."""
        processes = [place.process for place in self._places]
        known = [process for process in processes if process or not self._is_ending]
        return health_of_all([(process.pid, process.ages) if process else (None, None) for process in known])
