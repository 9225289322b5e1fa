"""Fire the deployed schedules more often than EventBridge Scheduler can, with their own input."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from local.emulator import Emulator

# The `tick_period` of periods.yaml.
TICK_SECONDS = 2.0
# A deployment may add schedules.
_LOOK_SECONDS = 2.0


@contextmanager
def fired_every(seconds: float, emulator: Emulator, group: str) -> Iterator[list[BaseException]]:
    """Invoke the target of every schedule of a group so often, each in a thread of its own, until the context ends.

    The target is what the schedule has at that moment: a deployment may change it. Schedules that are added are fired
    within seconds. Yields the list into which faults go: a tick that failed once is no reason to stop the others.
    """
    firing = _Firing(
        scheduler=emulator.client("scheduler"), functions=emulator.client("lambda"), group=group, seconds=seconds
    )
    firing.begin()
    threading.Thread(target=firing.look_for_more, daemon=True).start()
    try:
        yield firing.faults
    finally:
        # A tick may be waiting for a lease: what ends the emulator next ends it too.
        firing.stop.set()


@dataclass(kw_only=True, slots=True)
class _Firing:
    """What is fired, by two clients of the emulator, and what failed of it."""

    scheduler: Any
    functions: Any
    group: str
    seconds: float
    started: set[str] = field(default_factory=set)
    faults: list[BaseException] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Fire each schedule that is not fired yet. One that goes and comes back is fired by the thread that it had."""
        new = [name for name in self._names() if name not in self.started]
        for number, name in enumerate(new):
            # One after another: all at once would each start a process of the function.
            threading.Thread(target=self._fire, args=(name, self.seconds * number / len(new)), daemon=True).start()
        self.started.update(new)

    def look_for_more(self) -> None:
        while not self.stop.wait(_LOOK_SECONDS):
            self._noting(self.begin)

    def _names(self) -> list[str]:
        pages = self.scheduler.get_paginator("list_schedules").paginate(GroupName=self.group)
        return [schedule["Name"] for page in pages for schedule in page["Schedules"]]

    def _fire(self, name: str, first: float) -> None:
        self.stop.wait(first)
        while not self.stop.is_set():
            began = time.monotonic()
            self._noting(lambda: self._fire_once(name))
            self.stop.wait(self.seconds - (time.monotonic() - began))

    def _fire_once(self, name: str) -> None:
        try:
            target = self.scheduler.get_schedule(GroupName=self.group, Name=name)["Target"]
        except self.scheduler.exceptions.ResourceNotFoundException:
            return
        answer = self.functions.invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())
        # Whatever it says: a connection serves again once its answer was read.
        payload = answer["Payload"].read()
        if "FunctionError" in answer:
            self.faults.append(RuntimeError(f"{target['Input']}: {json.loads(payload)}"))

    def _noting(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as fault:
            if not self.stop.is_set():
                self.faults.append(fault)
