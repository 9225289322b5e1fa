"""The client for asyncio: the same methods, each run in a thread."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import update_wrapper
from itertools import islice
from typing import Concatenate, ParamSpec, TypeVar

from dueline.client.answers import Job, ScheduledJob
from dueline.client.client import Client
from dueline.client.new_job import NewJob
from dueline.errors import DuelineError
from dueline.lookup.listing import MOST_JOBS

P = ParamSpec("P")
A = TypeVar("A")


def _in_a_thread(call: Callable[Concatenate[Client, P], A]) -> Callable[Concatenate["AsyncClient", P], Awaitable[A]]:
    def asked(self: "AsyncClient", /, *args: P.args, **given: P.kwargs) -> Awaitable[A]:
        return asyncio.to_thread(call, self.client, *args, **given)

    update_wrapper(asked, call)
    return asked


class AsyncClient:
    """A Client for asyncio: the same methods to await, none of which blocks the event loop.

    Each call runs the given Client's method in a thread. Cancelling the await does not stop that thread: the request
    may still be carried out.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    schedule = _in_a_thread(Client.schedule)
    schedule_many = _in_a_thread(Client.schedule_many)
    get = _in_a_thread(Client.get)
    reschedule = _in_a_thread(Client.reschedule)
    cancel = _in_a_thread(Client.cancel)
    cancel_many = _in_a_thread(Client.cancel_many)
    queues = _in_a_thread(Client.queues)
    queue = _in_a_thread(Client.queue)
    pause = _in_a_thread(Client.pause)
    resume = _in_a_thread(Client.resume)
    set_rate = _in_a_thread(Client.set_rate)

    async def schedule_each(self, queue: str, jobs: Iterable[NewJob]) -> AsyncIterator[Job | DuelineError]:
        """Schedule each job and yield the results, as Client.schedule_each does; `jobs` is iterated in a thread."""
        async for result in _in_portions(self.client.schedule_each(queue, jobs)):
            yield result

    async def jobs(
        self, queue: str, *, start: datetime | None = None, end: datetime | None = None
    ) -> AsyncIterator[ScheduledJob]:
        """Yield the scheduled jobs, as Client.jobs does."""
        async for job in _in_portions(self.client.jobs(queue, start=start, end=end)):
            yield job


async def _in_portions(items: Iterator[A]) -> AsyncIterator[A]:
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
