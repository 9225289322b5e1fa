"""One of the processes that a supervisor keeps at work: who is at it, or when the next one is started."""

from collections.abc import Callable

from dueline.ports import Clock
from dueline.worker.processes.process import Process
from dueline.worker.watch.event import ProcessEvent, ProcessKind

_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 30.0
_MOST_DOUBLINGS = 5
# A process that has worked for so long did not die of its start.
_STEADY_SECONDS = 60.0


class Place:
    """`start` starts a process of this number. `jitter` returns 0 to 1."""

    def __init__(
        self,
        number: int,
        *,
        start: Callable[[int], Process],
        clock: Clock,
        jitter: Callable[[], float],
        report: Callable[[ProcessEvent], None],
    ) -> None:
        self._number, self._start, self._clock, self._jitter, self._report = number, start, clock, jitter, report
        self.process: Process | None = None
        self._deaths = 0
        self._again_at = 0.0

    @property
    def is_to_start(self) -> bool:
        return self.process is None and self._clock.monotonic() >= self._again_at

    def start(self, *, at_any_rate: bool) -> None:
        """Start a process. One that cannot be started is tried again later, or raises OSError, if it must be."""
        try:
            self.process = self._start(self._number)
        except OSError as fault:
            if at_any_rate:
                raise
            self._note_death(ProcessKind.FAILED, reason=str(fault))
        else:
            self._report(ProcessEvent(kind=ProcessKind.STARTED, number=self._number, pid=self.process.pid))

    def look(self) -> int | None:
        """Hear what the process tells; return its exit code if it has ended."""
        return self.process.look() if self.process else None

    def end(self) -> None:
        """Tell the process to end with its grace."""
        if self.process:
            self.process.end()

    def hurry(self) -> None:
        """Tell the process to end without grace."""
        if self.process:
            self.process.hurry()

    @property
    def has_begun(self) -> bool:
        return self.process is not None and self.process.has_begun

    def note_death(self, code: int) -> None:
        """Leave the place to another process: soon, or later if one after the other dies."""
        process = self._left()
        if process.has_begun and self._clock.monotonic() - process.started >= _STEADY_SECONDS:
            self._deaths = 0
        self._note_death(ProcessKind.DIED, pid=process.pid, exit_code=code)

    def note_end(self, code: int) -> None:
        """Leave the place empty."""
        self._report(ProcessEvent(kind=ProcessKind.ENDED, number=self._number, pid=self._left().pid, exit_code=code))

    def _left(self) -> Process:
        process, self.process = self.process, None
        if process is None:
            raise ValueError(f"no process {self._number} runs")
        return process

    def _note_death(self, kind: ProcessKind, *, pid: int = 0, exit_code: int | None = None, reason: str = "") -> None:
        longest = min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** min(self._deaths, _MOST_DOUBLINGS))
        again_in = round(longest * (1 + self._jitter()) / 2, 3)
        self._deaths += 1
        self._again_at = self._clock.monotonic() + again_in
        about = {"pid": pid, "exit_code": exit_code, "reason": reason, "again_in": again_in}
        self._report(ProcessEvent(kind=kind, number=self._number, **about))
