"""Keep several worker processes at work, and end them together."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe

from dueline.core.clock import SystemClock
from dueline.core.ports import Clock
from dueline.worker.log import log_process
from dueline.worker.runner import NO_GRACE, SUPERVISED, Shutdown, signal_handlers

_LOOK_SECONDS = 0.1
# Of a process that has drained already, or is still starting: SIGTERM ends it.
_ENDED_BY_SIGTERM = 128 + signal.SIGTERM
_LONGEST_DELAY_SECONDS = 30.0
# A process that has worked for so long did not die of its start.
_STEADY_SECONDS = 60.0


def supervise(command: Sequence[str], *, processes: int) -> int:
    """Run a worker's command so many times over until SIGTERM or SIGINT; return the exit code."""
    clock, shutdown = SystemClock(), Shutdown()
    slots = [WorkerSlot(number, command, clock=clock) for number in range(1, processes + 1)]
    with signal_handlers(shutdown.request):
        return Supervisor(slots, clock=clock).run(shutdown)


class WorkerSlot:
    """One of the processes that a supervisor keeps at work, or when the next one is started in its place.

    `number` is from 1. It `is_ready` once its process can begin with jobs.
    """

    def __init__(
        self, number: int, command: Sequence[str], *, clock: Clock, report: Callable[..., None] = log_process
    ) -> None:
        self.command, self._number, self._clock = command, number, clock
        self._log = partial(report, number=number)
        self._process: subprocess.Popen[bytes] | None = None
        self.is_ready = False
        self._deaths, self._started, self._again_at = 0, 0.0, 0.0

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def is_to_start(self) -> bool:
        return self._process is None and self._clock.monotonic() >= self._again_at

    def start_again(self) -> None:
        """Start a process, or note that the system has refused to: then it is tried again later."""
        try:
            self.start()
        except OSError as fault:
            self._log("process failed to start", reason=str(fault), again_in=self.rest(), is_warning=True)

    def start(self) -> None:
        """Start a process. Raises OSError."""
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603, it is this process's own command
                self.command,
                env={**os.environ, SUPERVISED: f"{self._number}:{theirs.fileno()}"},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._started, self.is_ready = self._clock.monotonic(), False
        self._log("process started", pid=self._process.pid)

    def ended(self) -> int | None:
        """Return the exit code of a process that has ended, that of a shell if a signal ended it."""
        if self._process is None:
            return None
        code = self._process.poll()
        with suppress(EOFError, OSError):
            if self._connection.poll():
                self.is_ready |= bool(self._connection.recv_bytes())
        return code if code is None or code >= 0 else 128 - code

    def note_end(self, code: int) -> None:
        """Leave the slot empty."""
        self._log("process ended", pid=self._leave(), exit_code=code)

    def note_death(self, code: int) -> None:
        """Leave the slot to another process: soon, or later if one after the other dies."""
        if self.is_ready and self._clock.monotonic() - self._started >= _STEADY_SECONDS:
            self._deaths = 0
        self._log("process died", pid=self._leave(), exit_code=code, again_in=self.rest(), is_warning=True)

    def rest(self) -> float:
        """Return in how many seconds the next process is started: twice as long each time."""
        again_in = min(_LONGEST_DELAY_SECONDS, 2.0 ** min(self._deaths, 10))
        self._deaths += 1
        self._again_at = self._clock.monotonic() + again_in
        return again_in

    def end(self) -> None:
        """Let the process end with its grace. One that is still starting ends at once."""
        if self._process:
            self._process.send_signal(signal.SIGTERM)

    def force(self) -> None:
        """Let the process end without grace."""
        with suppress(OSError):
            self._connection.send_bytes(NO_GRACE)

    def _leave(self) -> int:
        process, self._process = self._process, None
        self._connection.close()
        return process.pid if process else 0


class Supervisor:
    """Keeps a process in each slot: another one is started for each that dies."""

    def __init__(self, slots: Sequence[WorkerSlot], *, clock: Clock) -> None:
        self._slots, self._clock = slots, clock
        self._is_ready = False

    def run(self, shutdown: Shutdown) -> int:
        """Keep them at work until shutdown is requested, then let them drain; return the highest of their exit codes.

        The first one starts alone. If it ends before it is ready, its exit code is returned: what is wrong with the
        code, or its settings, ends all, and is reported once. Raises OSError if it cannot be started.
        """
        code = None
        try:
            while code is None and not shutdown.is_requested:
                code = self._look()
                self._clock.sleep(_LOOK_SECONDS)
        finally:
            ended = self._end(shutdown)
        return ended if code is None or shutdown.is_requested else code

    def _look(self) -> int | None:
        """Start what is to be started; return the exit code of the first process if it could not begin."""
        for slot in self._slots if self._is_ready else self._slots[:1]:
            if slot.is_to_start:
                slot.start_again() if self._is_ready else slot.start()
            code = slot.ended()
            self._is_ready |= slot.is_ready
            if code is not None and not self._is_ready:
                slot.note_end(code)
                return code
            if code is not None:
                slot.note_death(code)
        return None

    def _end(self, shutdown: Shutdown) -> int:
        """End all with grace, or at once if requested twice; return the highest exit code of those that were ready.

        One that was still starting had no jobs, whatever it exits with.
        """
        is_forced, codes = False, {0}
        for slot in self._slots:
            slot.end()
        while running := [slot for slot in self._slots if slot.is_running]:
            if shutdown.is_forced and not is_forced:
                is_forced = True
                for slot in running:
                    slot.force()
            for slot in running:
                if (code := slot.ended()) is not None:
                    codes.add(code if slot.is_ready else 0)
                    slot.note_end(code)
            self._clock.sleep(_LOOK_SECONDS)
        return max(codes - {_ENDED_BY_SIGTERM})
