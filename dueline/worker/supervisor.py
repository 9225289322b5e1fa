"""Keep several worker processes at work, and end them together."""

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from dueline.core.clock import SystemClock
from dueline.core.ports import Clock
from dueline.worker.events import ProcessEvent, ProcessKind
from dueline.worker.log import log_process
from dueline.worker.prometheus import health_of_all, served, shared
from dueline.worker.runner import FORCE, SUPERVISED, Shutdown, signal_handlers

_LOOK_SECONDS = 0.1
# Of a process that has drained already, or is still starting: SIGTERM ends it.
_ENDED_BY_SIGTERM = 128 + signal.SIGTERM
_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 30.0
_MOST_DOUBLINGS = 5
# A process that has worked for so long did not die of its start.
_STEADY_SECONDS = 60.0


class Process:
    """A worker process that was started. `ages` are by queue, None until all its queues are ready, as are `kinds`."""

    def __init__(
        self, started: "subprocess.Popen[bytes]", connection: "Connection[bytes, bytes]", *, clock: Clock
    ) -> None:
        self._process, self._connection, self._clock = started, connection, clock
        self._ages: Mapping[str, float] | None = None
        self.kinds: Mapping[str, Sequence[str]] = {}
        self.started = self._heard = clock.monotonic()
        self.pid = started.pid

    @classmethod
    def start(cls, command: Sequence[str], *, number: int, environ: Mapping[str, str], clock: Clock) -> "Process":
        """Start it. Raises OSError."""
        ours, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            started = subprocess.Popen(  # noqa: S603, it is this process's own command
                command, env={**environ, SUPERVISED: f"{number}:{handle}"}, pass_fds=[handle], stdin=subprocess.DEVNULL
            )
        return cls(started, ours, clock=clock)

    def look(self) -> int | None:
        """Receive what it reported; return its exit code if it has ended, that of a shell if a signal ended it."""
        code = self._process.poll()
        with suppress(EOFError, OSError):
            while self._connection.poll():
                report = json.loads(self._connection.recv_bytes())
                self._ages, self.kinds = report["ages"], report["kinds"]
                self._heard = self._clock.monotonic()
        if code is not None:
            self._connection.close()
        return code if code is None or code >= 0 else 128 - code

    @property
    def ages(self) -> dict[str, float] | None:
        if self._ages is None:
            return None
        since = self._clock.monotonic() - self._heard
        return {queue: age + since for queue, age in self._ages.items()}

    @property
    def is_ready(self) -> bool:
        return self._ages is not None

    def end(self) -> None:
        """Let it end with its grace. One that is still starting ends at once."""
        self._process.send_signal(signal.SIGTERM)

    def force(self) -> None:
        """Let it end without grace."""
        with suppress(OSError):
            self._connection.send_bytes(FORCE)


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
        self._slots = [WorkerSlot(number, **parts) for number in range(1, processes + 1)]
        self._clock = clock
        self._is_ready = self._is_ending = False

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
        for slot in self._slots:
            if slot.is_to_start and (self._is_ready or slot is self._slots[0]):
                slot.start(at_any_rate=not self._is_ready)
            code = slot.look()
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
        self._is_ending, is_forced, codes = True, False, {0}
        for process in self._running:
            process.end()
        while self._running:
            if shutdown.is_forced and not is_forced:
                is_forced = True
                for process in self._running:
                    process.force()
            for slot in self._slots:
                code = slot.look()
                if code is not None:
                    codes.add(code if slot.is_ready else 0)
                    slot.note_end(code)
            self._clock.sleep(_LOOK_SECONDS)
        return max(codes - {_ENDED_BY_SIGTERM})

    @property
    def _running(self) -> list[Process]:
        return [slot.process for slot in self._slots if slot.process]

    def health(self) -> dict[str, Any]:
        """Return the health of all processes. During shutdown, those that have ended are left out."""
        processes = [slot.process for slot in self._slots if slot.process or not self._is_ending]
        # All run the same code.
        kinds = next((process.kinds for process in processes if process and process.is_ready), {})
        return health_of_all([(each.pid, each.ages) if each else (None, None) for each in processes], kinds)


def supervise(command: Sequence[str], *, processes: int, port: int | None) -> int:
    """Run a worker's command so many times over until SIGTERM or SIGINT; return the exit code.

    `/health` and `/metrics` of all are served on `port`. Raises OSError when it is taken.
    """
    shutdown, environ, clock = Shutdown(), dict(os.environ), SystemClock()
    with ExitStack() as stack:
        stack.enter_context(signal_handlers(shutdown.request))
        supervisor = Supervisor(
            lambda number: Process.start(command, number=number, environ=environ, clock=clock),
            processes=processes,
            clock=clock,
            jitter=random.random,
            report=log_process,
        )
        if port is not None:
            registry, variables = stack.enter_context(shared(environ))
            environ |= variables
            stack.enter_context(served(port, registry=registry, health=supervisor.health))
        return supervisor.run(shutdown)


class WorkerSlot:
    """One of the processes that a supervisor keeps at work, or when the next one is started in its place."""

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
        """Receive what the process reports; return its exit code if it has ended."""
        return self.process.look() if self.process else None

    @property
    def is_ready(self) -> bool:
        return self.process is not None and self.process.is_ready

    def note_death(self, code: int) -> None:
        """Leave the slot to another process: soon, or later if one after the other dies."""
        process = self._left()
        if process.is_ready and self._clock.monotonic() - process.started >= _STEADY_SECONDS:
            self._deaths = 0
        self._note_death(ProcessKind.DIED, pid=process.pid, exit_code=code)

    def note_end(self, code: int) -> None:
        """Leave the slot empty."""
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
