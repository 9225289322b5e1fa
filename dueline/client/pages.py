"""Pages: lists that are fetched as they are read."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from dueline.retry.calls import Calls

A = TypeVar("A")


def pages_of(calls: Calls, ask: Callable[..., tuple[Sequence[A], str]]) -> Iterator[A]:
    """Yield what `ask` returns for each `after`, "" at first; the next page is fetched when the last one is used up."""
    items, after = calls.ask(partial(ask, after=""))
    yield from items
    while after:
        items, after = calls.ask(partial(ask, after=after))
        yield from items
