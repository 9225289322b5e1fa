"""The client for asyncio: the same calls, each in a thread of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

from dueline.answers import ScheduledJob
from dueline.client import Client

P = ParamSpec("P")
A = TypeVar("A")


def _in_a_thread(
    call: Callable[Concatenate[Client, P], A],
) -> Callable[Concatenate["AsyncClient", P], Awaitable[A]]:
    @wraps(call)
    def asked(self: "AsyncClient", *args: P.args, **kwargs: P.kwargs) -> Awaitable[A]:
        return asyncio.to_thread(call, self.client, *args, **kwargs)

    return asked


class AsyncClient:
    """Asks as a Client does, without holding up the event loop. Whatever it returns or raises is a Client's.

    A call that is cancelled goes on in its thread: what it asked for may be done.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    @wraps(Client.connect)
    async def connect(cls, *args: P.args, **kwargs: P.kwargs) -> Self:
        return cls(await asyncio.to_thread(Client.connect, *args, **kwargs))

    schedule = _in_a_thread(Client.schedule)
    schedule_many = _in_a_thread(Client.schedule_many)
    get = _in_a_thread(Client.get)
    reschedule = _in_a_thread(Client.reschedule)
    cancel = _in_a_thread(Client.cancel)
    cancel_many = _in_a_thread(Client.cancel_many)
    queues = _in_a_thread(Client.queues)
    queue = _in_a_thread(Client.queue)

    async def jobs(
        self, queue: str, *, start: datetime | None = None, end: datetime | None = None
    ) -> AsyncIterator[ScheduledJob]:
        """Yield the jobs that are scheduled, as Client.jobs does."""
        listed = self.client.jobs(queue, start=start, end=end)
        while (job := await asyncio.to_thread(next, listed, None)) is not None:
            yield job
