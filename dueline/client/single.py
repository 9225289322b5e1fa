"""Single: a call for one item, which may share its requests with others."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from dueline.client.linger import Linger
from dueline.errors import RETRYABLE, DuelineError
from dueline.retry.calls import Calls
from dueline.retry.pace import Pace

A = TypeVar("A")
B = TypeVar("B")
Ask: TypeAlias = Callable[[str, Sequence[A]], Sequence[B | DuelineError]]


class Single(Generic[A, B]):
    """An item that was checked, to ask a queue for by `ask`, or by requests that it can `share`; retried as `calls` do.

    `again` returns what to ask for after an error, and `key_of` the idempotency key that the item goes under, if any.
    """

    def __init__(
        self,
        queue: str,
        item: A,
        *,
        ask: Ask[A, B],
        share: Linger[A, B] | None,
        calls: Calls,
        again: Callable[[A, DuelineError], A] = lambda item, _: item,
        key_of: Callable[[A], str | None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self._item = item
        self._ask = ask
        self._share = share
        self._calls = calls
        self._again = again
        self._key_of = key_of

    def result(self) -> B:
        """Return the result, or raise the error."""
        ask = partial(self._ask if self._share is None else self._share.ask, self._queue)
        (result,) = self._calls.ask_for_each(ask, [self._item], pace=Pace(most=1), again=self._again)
        return self._or_raised(result)

    async def result_in_loop(self) -> B:
        """Return the result, or raise the error, while the event loop goes on. No wait takes a thread, if shared."""
        if self._share is None:
            return await asyncio.to_thread(self.result)
        item, backoff = self._item, self._calls.backoff()
        while True:
            result = await self._share.ask_in_loop(self._queue, item)
            seconds = backoff.before_next([result]) if isinstance(result, RETRYABLE) else None
            if seconds is None or not isinstance(result, DuelineError):
                return self._or_raised(result)
            await asyncio.sleep(seconds)
            item = self._again(item, result)

    def _or_raised(self, result: B | DuelineError) -> B:
        if isinstance(result, DuelineError):
            result.key = self._key_of(self._item) or result.key
            raise result
        return result
