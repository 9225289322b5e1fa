"""Calls that block, from asyncio: each runs in a thread."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from functools import update_wrapper
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

from dueline.lookup.listing import MOST_JOBS

P = ParamSpec("P")
A = TypeVar("A")


def in_a_thread(
    call: Callable[Concatenate[Any, P], A], *, of: Callable[[Any], Any]
) -> Callable[Concatenate[Any, P], Awaitable[A]]:
    """Return a method that runs `call` in a thread, on the object that `of` returns of its own."""

    def asked(self: Any, /, *args: P.args, **given: P.kwargs) -> Awaitable[A]:
        return asyncio.to_thread(call, of(self), *args, **given)

    update_wrapper(asked, call)
    return asked


async def in_portions(items: Iterator[A]) -> AsyncIterator[A]:
    """Yield what an iterator does that blocks: a portion at a time, in a thread."""
    try:
        while some := await asyncio.to_thread(lambda: list(islice(items, MOST_JOBS))):
            for item in some:
                yield item
    finally:
        await asyncio.to_thread(_close, items)


def _close(items: Iterator[A]) -> None:
    """Close an iterator, which waits for requests in flight; one that still runs in its thread is left to it."""
    if isinstance(items, Generator):
        with suppress(ValueError):
            items.close()
