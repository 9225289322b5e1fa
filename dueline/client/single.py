"""Single: a call for one item, which may share its requests with others."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from dueline.client.linger import Linger
from dueline.errors import RETRYABLE, DuelineError
from dueline.ports import Clock
from dueline.retry.pace import Pace

A = TypeVar("A")
B = TypeVar("B")
A_co = TypeVar("A_co", covariant=True)
Ask: TypeAlias = Callable[[str, Sequence[A]], Sequence[B | DuelineError]]


class Finish(Protocol[A_co, B]):
    """Asks for an item by `ask`, or else by the API itself, and retries as the client's patience says."""

    def __call__(self, *, pace: Pace, ask: Ask[A_co, B] | None = None) -> list[B | DuelineError]: ...


class Single(Generic[A, B]):
    """An item that was checked, to ask a queue for, by requests of its own or by those that it can `share`."""

    def __init__(self, queue: str, item: A, *, finish: Finish[A, B], share: Linger[A, B] | None, clock: Clock) -> None:
        self._queue = queue
        self._item = item
        self._finish = finish
        self._share = share
        self._clock = clock

    def result(self) -> B:
        """Return the result, or raise the error."""
        return _only(self._finish(pace=Pace(most=1), ask=None if self._share is None else self._share.ask))

    async def result_in_loop(self) -> B:
        """Return the result, or raise the error, while the event loop goes on. What is tried again has a thread."""
        if self._share is None:
            return await asyncio.to_thread(self.result)
        pace, begun = Pace(most=1), self._clock.monotonic()
        first = await self._share.ask_in_loop(self._queue, self._item)
        # Patience counts from here.
        pace.note(1, finished=0, too_much=False, begun=begun, now=begun)
        ask = _going_on(first, self._share.ask)
        if not isinstance(first, RETRYABLE):
            return _only(self._finish(pace=pace, ask=ask))
        return _only(await asyncio.to_thread(self._finish, pace=pace, ask=ask))


def _going_on(first: B | DuelineError, ask: Ask[A, B]) -> Ask[A, B]:
    """Return what asks, whose first attempt was made."""
    made = [first]

    def asked(queue: str, items: Sequence[A]) -> Sequence[B | DuelineError]:
        return [made.pop()] if made else ask(queue, items)

    return asked


def _only(results: Sequence[B | DuelineError]) -> B:
    (result,) = results
    if isinstance(result, DuelineError):
        raise result
    return result
