"""Fire the deployed schedules more often than EventBridge Scheduler can, with their own input."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from local.emulator import Emulator

# The `tick_period` of periods.yaml.
TICK_SECONDS = 2.0
T = TypeVar("T")


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
            names = self._noting(self._names) or []
            for name in names:
                if name not in self._under_way:
                    self._under_way.add(name)
                    threading.Thread(target=self._noting, args=(self._fire, name), daemon=True).start()
                self.stop.wait(seconds / len(names))
            if not names:
                self.stop.wait(seconds)

    def _names(self) -> list[str]:
        pages = self._scheduler.get_paginator("list_schedules").paginate(GroupName=self._group)
        return [schedule["Name"] for page in pages for schedule in page["Schedules"]]

    def _fire(self, name: str) -> None:
        try:
            target = self._scheduler.get_schedule(GroupName=self._group, Name=name)["Target"]
            answer = self._functions.invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())
        except self._scheduler.exceptions.ResourceNotFoundException:
            return  # a deployment has removed it
        finally:
            self._under_way.discard(name)
        # Whatever it says: a connection serves again once its answer was read.
        payload = answer["Payload"].read()
        if "FunctionError" in answer:
            raise RuntimeError(f"{target['Input']}: {json.loads(payload)}")

    def _noting(self, do: Callable[..., T], *args: str) -> T | None:
        try:
            return do(*args)
        except Exception as fault:
            if not self.stop.is_set():
                self.faults.append(fault)
        return None
