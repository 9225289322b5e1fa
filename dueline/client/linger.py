"""Linger: calls of several threads and tasks that come at about the same time travel as one request.

A request that threads share is sent by one of these threads. What a task is to send has a thread of the lanes' own: in
the event loop's executor it would wait for threads that may themselves wait for its request, for ever.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any, Generic, TypeVar

from dueline.client.answers import Job
from dueline.client.api import Api, Draft
from dueline.client.lanes import Call, Lanes, LanesOfProcess
from dueline.errors import DuelineError, InvalidJob
from dueline.model.job import JobId, State

# What is longer is mostly a number of milliseconds.
LONGEST_SECONDS = 1.0

A = TypeVar("A")
B = TypeVar("B")


def linger_seconds(linger: object) -> float:
    """Return the seconds to linger, 0 for not at all. Raises ValueError."""
    seconds = linger.total_seconds() if isinstance(linger, timedelta) else 0.0 if linger is None else linger
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_SECONDS:
        allowed = f"from 0 to {LONGEST_SECONDS:g} seconds, or a timedelta, or None"
        raise ValueError(f"linger is {linger!r}: it must be {allowed}")
    return seconds


class Linger(Generic[A, B]):
    """Sends items to queues by `send`: those of one queue and one `group` that come within `seconds` go together.

    An item that comes while nothing is under way leaves at once. Others leave together: `seconds` after they came at
    the latest, and earlier once nothing is under way any more, or once they are 500 or have 5 MB. `size` tells an
    item's bytes. Threads, tasks of event loops and forked processes may share it.
    """

    def __init__(
        self,
        send: Callable[[str, Sequence[A]], Sequence[B | DuelineError]],
        *,
        seconds: float,
        size: Callable[[A], int],
        group: Callable[[A], Hashable],
    ) -> None:
        self._send = send
        self._seconds = seconds
        self._size = size
        self._group = group
        self._lanes: LanesOfProcess[A, B] = LanesOfProcess()

    def ask(self, queue: str, items: Sequence[A]) -> Sequence[B | DuelineError]:
        """Send an item, in this thread or in that of another caller, and return its result or its error."""
        (item,) = items
        lanes = self._lanes()
        call = self._call(queue, item, for_others=threading.current_thread() is not threading.main_thread())
        try:
            lanes.join(call)
            waits_until = time.monotonic() + self._seconds
            wait([call.turn], self._seconds)
            if not lanes.take(call) and lanes.waits(call):
                # Who was told to send may be a task of this very thread, which runs only once this call has returned.
                wait([call.answer], max(0.0, waits_until - time.monotonic()))
                lanes.take(call, alone=True)
            self._deliver(queue, call.batch)
        finally:
            lanes.end(call)
        answer = call.answer.result()
        return self._send(queue, items) if answer is None else [answer]

    async def ask_in_loop(self, queue: str, item: A) -> B | DuelineError:
        """Send an item as `ask` does, while the event loop goes on."""
        lanes = self._lanes()
        call = self._call(queue, item, for_others=True)
        lanes.join(call)
        sending = None
        try:
            await _until(call.turn, self._seconds)
            if lanes.take(call):
                loop = asyncio.get_running_loop()
                sending = loop.run_in_executor(lanes.senders, self._deliver_and_end, lanes, queue, call)
        finally:
            if sending is None:
                lanes.end(call)
        await _until(call.answer)
        if (answer := call.answer.result()) is not None:
            return answer
        return await asyncio.get_running_loop().run_in_executor(lanes.senders, self._alone, queue, item)

    def _call(self, queue: str, item: A, *, for_others: bool) -> Call[A, B]:
        key = (queue, self._group(item))
        return Call(item=item, size=self._size(item), key=key, for_others=for_others)

    def _deliver(self, queue: str, batch: Sequence[Call[A, B]]) -> None:
        """Send a batch and answer its callers. Whatever is no DuelineError is raised."""
        if not batch:
            return
        for call, answer in zip(batch, self._answers(queue, [call.item for call in batch]), strict=True):
            call.answer.set_result(answer)

    def _answers(self, queue: str, items: Sequence[A]) -> Sequence[B | DuelineError | None]:
        try:
            return self._send(queue, items)
        except InvalidJob as error:
            # It may be for one of them, which is to fail alone: nothing of such a request was carried out.
            return [error] if len(items) == 1 else [None for _ in items]
        except DuelineError as error:
            return [error] if len(items) == 1 else [error.copy() for _ in items]

    def _deliver_and_end(self, lanes: Lanes[A, B], queue: str, call: Call[A, B]) -> None:
        try:
            self._deliver(queue, call.batch)
        finally:
            lanes.end(call)

    def _alone(self, queue: str, item: A) -> B | DuelineError:
        try:
            (answer,) = self._send(queue, [item])
        except DuelineError as error:
            return error
        return answer


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedRequests:
    """How single calls of a client share their requests; nothing where they do not."""

    schedule: Linger[Draft, Job] | None = None
    cancel: Linger[JobId, State] | None = None


def shared_requests(api: Api[Any], linger: object) -> SharedRequests:
    """Return how the calls of a client that lingers so long share their requests. Raises ValueError."""
    seconds = linger_seconds(linger)
    if not seconds:
        return SharedRequests()
    return SharedRequests(
        schedule=Linger(api.schedule, seconds=seconds, size=attrgetter("size"), group=attrgetter("group")),
        cancel=Linger(api.cancel, seconds=seconds, size=lambda _: 0, group=lambda _: None),
    )


async def _until(future: "Future[Any]", seconds: float | None = None) -> None:
    """Wait until a future is done, or for so long. It is never cancelled."""
    waited = asyncio.wrap_future(future)
    try:
        await asyncio.wait([waited], timeout=seconds)
    finally:
        waited.cancel()
