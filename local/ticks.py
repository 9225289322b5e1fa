"""Fire the deployed schedules more often than EventBridge Scheduler can: each second, with their own input."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from local.emulator import Emulator

# What a tick's fault says whose requests took too long: on a slow machine, no defect, and the next tick goes on.
TOO_SLOW = ("timed out", "timeout", "Timeout")

Target = Callable[[], dict[str, Any]]


@contextmanager
def fired_every(seconds: float, emulator: Emulator, group: str) -> Iterator[list[BaseException]]:
    """Invoke the target of every schedule of a group so often, each in a thread of its own, until the context ends.

    The target is what the schedule has at that moment: a deployment may change it.
    Yields the list into which faults go: a tick that failed once is no reason to stop the others.
    """
    stop = threading.Event()
    faults: list[BaseException] = []
    targets, functions = _targets(emulator, group), emulator.client("lambda")
    threads = [
        threading.Thread(
            target=_fire,
            args=(functions, target, stop, faults),
            kwargs={"seconds": seconds, "first": seconds * number / len(targets)},
            daemon=True,
        )
        for number, target in enumerate(targets)
    ]
    for thread in threads:
        thread.start()
    try:
        yield faults
    finally:
        # A tick may be waiting for a lease: whoever ends the emulator next ends it too.
        stop.set()


def _targets(emulator: Emulator, group: str) -> list[Target]:
    scheduler = emulator.client("scheduler")
    pages = scheduler.get_paginator("list_schedules").paginate(GroupName=group)
    names = [schedule["Name"] for page in pages for schedule in page["Schedules"]]
    return [partial(_target, scheduler, GroupName=group, Name=name) for name in names]


def _target(scheduler: Any, **schedule: str) -> dict[str, Any]:
    target: dict[str, Any] = scheduler.get_schedule(**schedule)["Target"]
    return target


def _fire(
    functions: Any,
    look_up: Target,
    stop: threading.Event,
    faults: list[BaseException],
    *,
    seconds: float,
    first: float,
) -> None:
    # One after another: all at once would each start a process of the function.
    stop.wait(first)
    while not stop.is_set():
        try:
            target = look_up()
            answer = functions.invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())
            # Whatever it says: a connection serves again once its answer was read.
            payload = answer["Payload"].read()
            if "FunctionError" in answer:
                faults.append(RuntimeError(f"{target['Input']}: {json.loads(payload)}"))
        except Exception as fault:
            if not stop.is_set():
                faults.append(fault)
        stop.wait(seconds)


def not_slow(faults: Iterable[BaseException], *allowed: str) -> list[str]:
    """Return what failed for another reason than a machine that is too slow, or than what is allowed besides.

    >>> not_slow([RuntimeError("updating row: Read timeout on endpoint URL"), RuntimeError("no such table")])
    ['no such table']
    """
    told = map(str, faults)
    return [fault for fault in told if not any(reason in fault for reason in (*TOO_SLOW, *allowed))]
