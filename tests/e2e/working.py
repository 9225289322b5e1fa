"""A worker in this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from dueline import Worker
from tests.waiting import HANG_SECONDS

# A worker that should stop ends its poll first.
_POLL_SECONDS = 1


@contextmanager
def working(worker: Worker) -> Iterator[None]:
    """Let a worker run in a thread while the context lasts; what it raises is raised here."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            worker.run(grace=5)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with patch("dueline.worker.receiving.LONG_POLL_SECONDS", _POLL_SECONDS):
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join(HANG_SECONDS)
    assert not thread.is_alive()
    assert not raised, raised
