"""What arrives in a queue, as a plain SQS consumer sees it."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from local.consumer import Landed, consuming
from local.emulator import Emulator

Receive = Callable[[str], dict[str, Any]]


class Inbox:
    """Collects what arrives in a queue until it is closed."""

    def __init__(self, emulator: Emulator, url: str) -> None:
        self.landed: list[Landed] = []
        self._stack = ExitStack()
        self._stack.enter_context(consuming(emulator, url, self.landed.append))

    def close(self) -> None:
        self._stack.close()

    def of(self, id: str) -> list[Landed]:
        return [landed for landed in self.landed if landed.id == id]


def wait_until(met: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until a condition is met, so long at most; return whether it was."""
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
