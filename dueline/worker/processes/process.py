"""A worker process, as its supervisor sees it."""

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from typing import TYPE_CHECKING

from dueline.ports import Clock
from dueline.worker.processes.link import HURRY, SUPERVISED

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class Process:
    """A process that was started. `ages` are by queue, None until all its queues have begun."""

    def __init__(
        self, started: "subprocess.Popen[bytes]", connection: "Connection[bytes, bytes]", *, clock: Clock
    ) -> None:
        self._process, self._connection, self._clock = started, connection, clock
        self._ages: Mapping[str, float] | None = None
        self.started = self._heard = clock.monotonic()
        self.pid = started.pid

    @classmethod
    def start(cls, command: Sequence[str], *, number: int, environ: Mapping[str, str], clock: Clock) -> "Process":
        """Start it. Raises OSError."""
        ours, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            started = subprocess.Popen(  # noqa: S603, it is this process's own command
                command,
                env={**environ, SUPERVISED: f"{number}:{handle}"},
                pass_fds=[handle],
                stdin=subprocess.DEVNULL,
            )
        return cls(started, ours, clock=clock)

    def look(self) -> int | None:
        """Hear what it told; return its exit code if it has ended, that of a shell if a signal ended it."""
        code = self._process.poll()
        with suppress(EOFError, OSError):
            while self._connection.poll():
                self._ages = json.loads(self._connection.recv_bytes())
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
    def has_begun(self) -> bool:
        return self._ages is not None

    def end(self) -> None:
        """Tell it to end with its grace. One that is still starting ends at once."""
        self._process.send_signal(signal.SIGTERM)

    def hurry(self) -> None:
        """Tell it to end without grace."""
        with suppress(OSError):
            self._connection.send_bytes(HURRY)
