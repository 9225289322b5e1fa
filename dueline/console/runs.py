"""Runs: what takes longer than a page waits for. Each is carried out in a thread, and the page asks how far it is."""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from dueline.console import problems
from dueline.console.problems import Refused
from dueline.model.text import shown

_MOST_KEPT = 50
# As long as it takes to show a few thousand messages again.
_CLOSING_SECONDS = 20.0

Progress = Callable[[int, int], None]
Work = Callable[[Progress], dict[str, Any]]


@dataclass(kw_only=True)
class Run:
    """A run over the dead letters of a queue, and how far it is: `done` of so many messages, None at first."""

    id: str
    queue: str
    state: str = "running"
    done: int = 0
    of: int | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    thread: threading.Thread = field(default_factory=threading.Thread, repr=False)

    def told(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        return {name: getattr(self, name) for name in ("state", "done", "of", "result", "error")}


class Runs:
    """The runs of a console: one at a time for each queue. Those that are over are kept, the last 50. Threads share it.

    What is kept of them is in memory alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._closing = False

    def begin(self, queue: str, work: Work) -> Run:
        """Begin a run, which `work` carries out in a thread. Raises Refused while the queue has another one."""
        run = Run(id=secrets.token_hex(8), queue=queue)
        run.thread = threading.Thread(target=self._carry_out, args=(run, work), daemon=True)
        with self._lock:
            over = [each.id for each in self._runs.values() if each.state != "running"]
            if any(each.queue == queue for id, each in self._runs.items() if id not in over):
                detail = f"a run over the dead letters of queue {queue!r} is under way: wait for its end"
                raise Refused(HTTPStatus.CONFLICT, detail, code="busy")
            for id in over[: 1 - _MOST_KEPT]:
                del self._runs[id]
            self._runs[run.id] = run
        run.thread.start()
        return run

    def find(self, id: str) -> Run:
        """Return a run. Raises Refused where there is none."""
        if (run := self._runs.get(id)) is None:
            detail = f"there is no run {shown(id)}: it was one of long ago, or of a console that has ended"
            raise Refused(HTTPStatus.NOT_FOUND, detail, code="run_not_found")
        return run

    def close(self, *, seconds: float = _CLOSING_SECONDS) -> None:
        """End what is under way, and wait for so long: then the messages that it held are visible again."""
        self._closing = True
        for run in list(self._runs.values()):
            if run.thread.is_alive():
                run.thread.join(seconds)

    def _carry_out(self, run: Run, work: Work) -> None:
        def progress(done: int, of: int) -> None:
            run.done, run.of = done, of
            if self._closing:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the console was ended", code="console_ended")

        try:
            run.result = work(progress)
        except Exception as error:
            run.error = problems.told(error)
        # Last: whoever sees it looks for the rest.
        run.state = "failed" if run.error else "done"
