"""What a handler may be, and what it may return: nothing that would run later, when its job counts as done."""

import inspect
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from dueline.worker.verdict import Discard


class Unfinished(Discard):
    """The handler returned what has not run yet, or not to its end, and what nobody waits for."""


def check_function(call: Callable[..., Any], *, queue: str = "") -> None:
    """Raise ValueError for what is no function of a job, or would return before its body runs."""
    whose = f"the handler of queue {queue!r}" if queue else "the handler"
    must = "it must be a function or a coroutine function of one job"
    if not callable(call):
        raise ValueError(f"{whose} is {call!r}: {must}")
    # An object's own is that of its type.
    for each in (call, type(call).__call__):
        if inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each):
            raise ValueError(f"{whose} is {call!r}, a generator function, of which nothing would run: {must}")


def check_returned(returned: object) -> None:
    """Raise Unfinished, by which the job goes to the dead-letter queue: its next attempt would be no better."""
    later = inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned)
    if later or isinstance(returned, Future):
        raise Unfinished(
            f"the handler returned an object of type {type(returned).__name__}, for which nobody waits: wait for it in"
            " the handler, or make that a coroutine function"
        )
