"""The client for asyncio: the same methods, each run in a thread."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial, update_wrapper
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from dueline.client.answers import Job
from dueline.client.async_schedules import AsyncSchedules
from dueline.client.client import Client
from dueline.client.in_threads import in_a_thread, in_portions
from dueline.client.listed import ScheduledJob
from dueline.client.new_job import NewJob
from dueline.client.single import Single
from dueline.errors import DuelineError
from dueline.retry.patience import Patience

if TYPE_CHECKING:
    import boto3

P = ParamSpec("P")
A = TypeVar("A")


_in_a_thread = partial(in_a_thread, of=attrgetter("client"))


def _in_the_loop(
    call: Callable[Concatenate[Client, P], A], begin: Callable[Concatenate[Client, P], Single[Any, A]]
) -> Callable[Concatenate["AsyncClient", P], Awaitable[A]]:
    """Return a call that waits without a thread for a request that it shares."""

    async def asked(self: "AsyncClient", /, *args: P.args, **given: P.kwargs) -> A:
        if self.client._shared.schedule is None:
            return await asyncio.to_thread(call, self.client, *args, **given)
        single = await asyncio.to_thread(begin, self.client, *args, **given)
        return await single.result_in_loop()

    update_wrapper(asked, call)
    return asked


def _begin_schedule(client: Client, queue: str, payload: object, **given: Any) -> Single[Any, Job]:
    return client._one_schedule(queue, NewJob(payload=payload, **given))


class AsyncClient:
    """A Client for asyncio: the same methods to await, none of which blocks the event loop.

    Each call runs the given Client's method in a thread. Cancelling the await does not stop that thread: the request
    may still be carried out. Calls that linger wait without a thread.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    def connect(
        cls,
        name: str = "dueline",
        *,
        url: str | None = None,
        session: "boto3.Session | None" = None,
        direct: bool = False,
        patience: Patience | None = None,
        linger: float | timedelta | None = None,
    ) -> Self:
        """Return a client as Client.connect does, with which tasks of one loop share requests if they `linger`.

        It blocks until the deployment is found: connect before the event loop runs.
        """
        client = Client.connect(name, url=url, session=session, direct=direct, patience=patience, linger=linger)
        return cls(client)

    schedule = _in_the_loop(Client.schedule, _begin_schedule)
    schedule_many = _in_a_thread(Client.schedule_many)
    get = _in_a_thread(Client.get)
    reschedule = _in_a_thread(Client.reschedule)
    run_now = _in_a_thread(Client.run_now)
    cancel = _in_the_loop(Client.cancel, Client._one_cancel)
    cancel_many = _in_a_thread(Client.cancel_many)
    queues = _in_a_thread(Client.queues)
    queue = _in_a_thread(Client.queue)
    pause = _in_a_thread(Client.pause)
    resume = _in_a_thread(Client.resume)
    set_rate = _in_a_thread(Client.set_rate)

    def schedules(self, queue: str) -> AsyncSchedules:
        """Return the schedules of a queue, as Client.schedules does: at once, and without a request."""
        return AsyncSchedules(self.client.schedules(queue))

    async def schedule_each(self, queue: str, jobs: Iterable[NewJob]) -> AsyncIterator[Job | DuelineError]:
        """Schedule each job and yield the results, as Client.schedule_each does; `jobs` is iterated in a thread."""
        async for result in in_portions(self.client.schedule_each(queue, jobs)):
            yield result

    async def jobs(
        self, queue: str, *, start: datetime | None = None, end: datetime | None = None
    ) -> AsyncIterator[ScheduledJob]:
        """Yield the scheduled jobs, as Client.jobs does."""
        async for job in in_portions(self.client.jobs(queue, start=start, end=end)):
            yield job
