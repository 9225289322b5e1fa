"""Fire the deployed schedules more often than EventBridge Scheduler can, with their own input."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local.emulator import Emulator

# The `tick_period` of periods.yaml.
TICK_SECONDS = 2.0


@contextmanager
def fired_every(seconds: float, emulator: Emulator, group: str) -> Iterator[list[BaseException]]:
    """Invoke the target of every schedule of a group so often, one after another, until the context ends.

    Each time they are those that there are by then: a deployment may add some. One whose call goes on is left out.
    Yields the list into which faults go: a tick that failed once is no reason to stop the others.
    """
    firing = _Firing(emulator, group)
    threading.Thread(target=firing.run, args=(seconds,), daemon=True).start()
    try:
        yield firing.faults
    finally:
        # A tick may be waiting for a lease: what ends the emulator next ends it too.
        firing.stop.set()


class _Firing:
    """What is fired, by two clients of the emulator, and what failed of it."""

    def __init__(self, emulator: Emulator, group: str) -> None:
        self._scheduler, self._functions = emulator.client("scheduler"), emulator.client("lambda")
        self._group, self._under_way = group, set[str]()
        self.faults: list[BaseException] = []
        self.stop = threading.Event()

    def run(self, seconds: float) -> None:
        """Fire them in turn: all at once would each start a process of the function."""
        while not self.stop.is_set():
            names = self._names()
            for name in names:
                if name not in self._under_way:
                    self._under_way.add(name)
                    threading.Thread(target=self._fire, args=(name,), daemon=True).start()
                self.stop.wait(seconds / len(names))
            if not names:
                self.stop.wait(seconds)

    def _names(self) -> list[str]:
        try:
            pages = self._scheduler.get_paginator("list_schedules").paginate(GroupName=self._group)
            return [schedule["Name"] for page in pages for schedule in page["Schedules"]]
        except Exception as fault:
            self._note(fault)
            return []

    def _fire(self, name: str) -> None:
        try:
            target: Any = self._scheduler.get_schedule(GroupName=self._group, Name=name)["Target"]
            answer = self._functions.invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())
            # Whatever it says: a connection serves again once its answer was read.
            payload = answer["Payload"].read()
            if "FunctionError" in answer:
                self._note(RuntimeError(f"{target['Input']}: {json.loads(payload)}"))
        except self._scheduler.exceptions.ResourceNotFoundException:
            pass  # a deployment has removed it
        except Exception as fault:
            self._note(fault)
        finally:
            self._under_way.discard(name)

    def _note(self, fault: BaseException) -> None:
        if not self.stop.is_set():
            self.faults.append(fault)
