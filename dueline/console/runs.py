"""Runs: what takes longer than a page waits for. Each is carried out in a thread, and the page asks how far it is."""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

from dueline.console import problems
from dueline.console.problems import Refused
from dueline.errors import DuelineError
from dueline.model import instant
from dueline.model.text import shown
from dueline.ports import Clock

_MOST_KEPT = 50
# As long as it takes to show a few thousand messages again.
_CLOSING_SECONDS = 20.0

Progress = Callable[[int, int], None]
Work = Callable[[Progress], dict[str, Any]]


class Ended(Exception):
    """The console ends, and so does what it runs."""


@dataclass(kw_only=True)
class Run:
    """A run over the dead letters of a queue, and how far it is: `done` of so many messages, None at first."""

    id: str
    queue: str
    action: str
    applies: bool
    begun: datetime
    state: str = "running"
    done: int = 0
    of: int | None = None
    ended: datetime | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    thread: threading.Thread = field(default_factory=threading.Thread, repr=False)

    def told(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        named = {"run": self.id, "queue": self.queue, "action": self.action, "apply": self.applies}
        times = {"begun": instant.text(self.begun), "ended": self.ended and instant.text(self.ended)}
        how_far = {"state": self.state, "done": self.done, "of": self.of}
        return {**named, **times, **how_far, "result": self.result, "error": self.error}


class Runs:
    """The runs of a console: one at a time for each queue. Those that are over are kept, the last 50. Threads share it.

    What is kept of them is in memory alone.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._closing = False

    def begin(self, queue: str, action: str, work: Work, *, applies: bool) -> Run:
        """Begin a run, which `work` carries out in a thread. Raises Refused while the queue has another one."""
        with self._lock:
            self._check_is_free(queue)
            now = self._clock.now()
            run = Run(id=secrets.token_hex(8), queue=queue, action=action, applies=applies, begun=now)
            run.thread = threading.Thread(target=self._carry_out, args=(run, work), daemon=True)
            self._forget_old()
            self._runs[run.id] = run
        run.thread.start()
        return run

    def find(self, id: str) -> Run:
        """Return a run. Raises Refused where there is none."""
        run = self._runs.get(id)
        if run is None:
            detail = f"there is no run {shown(id)}: it was one of long ago, or of a console that has ended"
            raise Refused(HTTPStatus.NOT_FOUND, detail, code="run_not_found")
        return run

    def close(self, *, seconds: float = _CLOSING_SECONDS) -> None:
        """End what is under way, and wait for so long: then the messages that it held are visible again."""
        self._closing = True
        for run in list(self._runs.values()):
            if run.thread.is_alive():
                run.thread.join(seconds)

    def _check_is_free(self, queue: str) -> None:
        for run in self._runs.values():
            if run.queue == queue and run.state == "running":
                detail = f"a {run.action} of queue {queue!r} is under way: wait for its end"
                raise Refused(HTTPStatus.CONFLICT, detail, code="busy", run=run.id)

    def _forget_old(self) -> None:
        over = [id for id, run in self._runs.items() if run.state != "running"]
        for id in over[: max(0, len(self._runs) - _MOST_KEPT + 1)]:
            del self._runs[id]

    def _carry_out(self, run: Run, work: Work) -> None:
        def progress(done: int, of: int) -> None:
            run.done, run.of = done, of
            if self._closing:
                raise Ended

        try:
            run.result = work(progress)
        except Exception as error:
            run.error = _why(error)
        run.ended = self._clock.now()
        # Last: whoever sees it looks for the rest.
        run.state = "failed" if run.error else "done"


def _why(error: Exception) -> dict[str, Any]:
    if isinstance(error, DuelineError):
        return problems.told(error)
    what = "the console was ended" if isinstance(error, Ended) else f"the console failed: {type(error).__name__}"
    return problems.told(Refused(HTTPStatus.INTERNAL_SERVER_ERROR, what, code="console_failed"))
