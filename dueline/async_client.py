"""The client for asyncio: the same calls, each in a thread."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from functools import update_wrapper
from itertools import islice
from typing import Concatenate, ParamSpec, TypeVar

from dueline.answers import ScheduledJob
from dueline.client import Client
from dueline.listing import MOST_JOBS

P = ParamSpec("P")
A = TypeVar("A")


def _in_a_thread(call: Callable[Concatenate[Client, P], A]) -> Callable[Concatenate["AsyncClient", P], Awaitable[A]]:
    def asked(self: "AsyncClient", /, *args: P.args, **given: P.kwargs) -> Awaitable[A]:
        return asyncio.to_thread(call, self.client, *args, **given)

    update_wrapper(asked, call)
    return asked


class AsyncClient:
    """Asks as the Client does that it is given, without holding up the event loop.

    A call that is cancelled goes on in its thread: what it asked for may be done.
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

    async def jobs(
        self, queue: str, *, start: datetime | None = None, end: datetime | None = None
    ) -> AsyncIterator[ScheduledJob]:
        """Yield the jobs that are scheduled, as Client.jobs does."""
        listed = self.client.jobs(queue, start=start, end=end)
        while page := await asyncio.to_thread(lambda: list(islice(listed, MOST_JOBS))):
            for job in page:
                yield job
