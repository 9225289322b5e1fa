"""The client for asyncio: the same methods, each run in a thread."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial, update_wrapper
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from dueline import otel
from dueline.client.api import job_ref
from dueline.client.client import Client, TransportName
from dueline.client.models import Job, NewJob
from dueline.client.schedules import Schedules
from dueline.core.job import State, queue_name
from dueline.core.listing import MOST_JOBS
from dueline.core.request import Default
from dueline.core.retry import Patience
from dueline.errors import RETRYABLE, DuelineError

if TYPE_CHECKING:
    import boto3

P = ParamSpec("P")
A = TypeVar("A")


def in_a_thread(call: Callable[Concatenate[Any, P], A]) -> Callable[Concatenate[Any, P], Awaitable[A]]:
    """Return a method that runs `call` in a thread, on the object that its own wraps."""

    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[A]:
        return asyncio.to_thread(call, self._wrapped, *args, **kwargs)

    update_wrapper(method, call)
    return method


def in_portions(
    call: Callable[Concatenate[Any, P], Iterator[A]],
) -> Callable[Concatenate[Any, P], AsyncIterator[A]]:
    """Return a method that iterates as `call` does: what blocks, a portion at a time, is read in a thread."""

    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[A]:
        items = call(self._wrapped, *args, **kwargs)
        try:
            while some := await asyncio.to_thread(lambda: list(islice(items, MOST_JOBS))):
                for item in some:
                    yield item
        finally:
            await asyncio.to_thread(_close, items)

    update_wrapper(method, call)
    return method


def _close(items: Iterator[A]) -> None:
    """Close an iterator, which waits for requests in flight; one that still runs in its thread is left to it."""
    if isinstance(items, Generator):
        with suppress(ValueError):
            items.close()


class AsyncSchedules:
    """The Schedules of one queue for asyncio: the same methods to await, none of which blocks the event loop."""

    def __init__(self, schedules: Schedules) -> None:
        self._wrapped = schedules

    put = in_a_thread(Schedules.put)
    get = in_a_thread(Schedules.get)
    pause = in_a_thread(Schedules.pause)
    resume = in_a_thread(Schedules.resume)
    delete = in_a_thread(Schedules.delete)
    run = in_a_thread(Schedules.run)
    backfill = in_a_thread(Schedules.backfill)
    history = in_a_thread(Schedules.history)
    list = in_portions(Schedules.list)


def _without_thread_if_coalesced(
    call: Callable[Concatenate[Client, P], A],
    prepare: Callable[Concatenate[Client, P], Callable[[], Awaitable[A]]],
) -> Callable[Concatenate["AsyncClient", P], Awaitable[A]]:
    """Return a method that waits without a thread for a request that it shares: one try is what `prepare` returns."""

    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> A:
        if not self.client._lingers:
            return await asyncio.to_thread(call, self.client, *args, **kwargs)
        send = await asyncio.to_thread(prepare, self.client, *args, **kwargs)
        backoff = self.client._calls.backoff()
        while True:
            try:
                return await send()
            except RETRYABLE as error:
                seconds = backoff.before_next([error])
                if seconds is None:
                    raise
            await asyncio.sleep(seconds)

    update_wrapper(method, call)
    return method


def _prepare_schedule(client: Client, queue: str, payload: object, **options: Any) -> Callable[[], Awaitable[Job]]:
    draft = client._draft(NewJob(payload=payload, **options), otel.current())
    name = queue_name(queue)

    async def send() -> Job:
        try:
            return await client._scheduling.send_in_loop(name, draft)
        except DuelineError as error:
            raise draft.named(error) from error.__cause__

    return send


def _prepare_cancel(
    client: Client, id: str | None = None, *, queue: str | None = None, key: str | None = None
) -> Callable[[], Awaitable[State]]:
    ref = job_ref(id, queue=queue, key=key)
    return partial(client._cancelling.send_in_loop, ref.queue, ref)


class AsyncClient:
    """A Client for asyncio: the same methods to await, none of which blocks the event loop.

    Each call runs the given Client's method in a thread. Cancelling the await does not stop that thread: the request
    may still be carried out. Calls that linger wait without a thread.
    """

    def __init__(self, client: Client) -> None:
        self.client = self._wrapped = client

    @classmethod
    def connect(
        cls,
        name: str = "dueline",
        *,
        url: str | None = None,
        session: "boto3.Session | None" = None,
        direct: bool = False,
        transport: TransportName | None = None,
        patience: Patience | None = None,
        linger: float | timedelta | None = None,
        default: Default | None = None,
    ) -> Self:
        """Return a client as Client.connect does, with which tasks of one loop share requests if they `linger`."""
        options: dict[str, Any] = {"direct": direct, "transport": transport, "patience": patience, "linger": linger}
        return cls(Client.connect(name, url=url, session=session, default=default, **options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    schedule = _without_thread_if_coalesced(Client.schedule, _prepare_schedule)
    schedule_many = in_a_thread(Client.schedule_many)
    schedule_each = in_portions(Client.schedule_each)
    jobs = in_portions(Client.jobs)
    tracked_jobs = in_portions(Client.tracked_jobs)
    get = in_a_thread(Client.get)
    reschedule = in_a_thread(Client.reschedule)
    cancel = _without_thread_if_coalesced(Client.cancel, _prepare_cancel)
    cancel_many = in_a_thread(Client.cancel_many)
    queues = in_a_thread(Client.queues)
    queue = in_a_thread(Client.queue)
    pause = in_a_thread(Client.pause)
    resume = in_a_thread(Client.resume)
    set_rate = in_a_thread(Client.set_rate)
    close = in_a_thread(Client.close)

    def schedules(self, queue: str) -> AsyncSchedules:
        """Return the schedules of a queue, as Client.schedules does: at once, and without a request."""
        return AsyncSchedules(self.client.schedules(queue))
