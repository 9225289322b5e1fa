"""A worker process's link to its supervisor: it tells how it is, and hears that it is to hurry or is alone."""

import json
import os
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from dueline.worker.runner import Ending, Runner

SUPERVISED = "DUELINE_SUPERVISED"
HURRY = b"hurry"
_TELL_SECONDS = 0.5


class Link:
    """One process's end of it. `number` tells which of the processes this is, from 1 on."""

    def __init__(self, connection: "Connection[bytes, bytes]", *, number: int) -> None:
        self._connection = connection
        self.number = number

    @classmethod
    def from_env(cls, environ: MutableMapping[str, str]) -> "Link | None":
        """Take the link out of the environment: a program that a job starts is not supervised."""
        given = environ.pop(SUPERVISED, None)
        if given is None:
            return None
        number, handle = map(int, given.split(":"))
        os.set_inheritable(handle, False)
        return cls(Connection(handle), number=number)

    @contextmanager
    def watched(self, runner: Runner, ending: Ending) -> Iterator[None]:
        """Tell how long ago each queue was asked, from when all have begun; end when the supervisor is gone.

        The first time before any job begins: one that kills the process does not look as if it could not begin.
        """
        closed = threading.Event()
        runner.on_begun = lambda: self._tell_once(runner)
        for do in (lambda: self._tell(runner, closed), lambda: self._hear(ending)):
            threading.Thread(target=do, name="supervisor", daemon=True).start()
        try:
            yield
        finally:
            closed.set()

    def _tell(self, runner: Runner, closed: threading.Event) -> None:
        while not closed.wait(_TELL_SECONDS):
            if runner.has_begun:
                self._tell_once(runner)

    def _tell_once(self, runner: Runner) -> None:
        # Where nobody listens any more, _hear knows what to do.
        with suppress(OSError):
            self._connection.send_bytes(json.dumps(runner.ages()).encode())

    def _hear(self, ending: Ending) -> None:
        with suppress(EOFError, OSError):
            while self._connection.recv_bytes() == HURRY:
                ending.hurry()
        ending.ask_once()
