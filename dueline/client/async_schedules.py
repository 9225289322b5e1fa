"""The schedules of a queue for asyncio: the same methods, each run in a thread."""

from collections.abc import AsyncIterator
from functools import partial
from operator import attrgetter

from dueline.client.in_threads import in_a_thread, in_portions
from dueline.client.schedule_answers import Schedule
from dueline.client.schedules import Schedules

_in_a_thread = partial(in_a_thread, of=attrgetter("schedules"))


class AsyncSchedules:
    """The Schedules of one queue for asyncio: the same methods to await, none of which blocks the event loop."""

    def __init__(self, schedules: Schedules) -> None:
        self.schedules = schedules

    put = _in_a_thread(Schedules.put)
    get = _in_a_thread(Schedules.get)
    pause = _in_a_thread(Schedules.pause)
    resume = _in_a_thread(Schedules.resume)
    delete = _in_a_thread(Schedules.delete)
    run = _in_a_thread(Schedules.run)
    backfill = _in_a_thread(Schedules.backfill)
    history = _in_a_thread(Schedules.history)
    preview = _in_a_thread(Schedules.preview)

    async def list(self) -> AsyncIterator[Schedule]:
        """Yield the schedules by name, as Schedules.list does."""
        async for schedule in in_portions(self.schedules.list()):
            yield schedule
