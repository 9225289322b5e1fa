"""The schedules of a queue: create, change, look up, list, pause, run and delete them."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import count as counted
from typing import Literal, TypeVar

from dueline.client.http_schedules import HttpSchedules
from dueline.client.new_schedule import aware, body_of
from dueline.client.pages import pages_of
from dueline.client.schedule_answers import NextRun, Run, Schedule, SubmittedRun
from dueline.errors import RETRYABLE, InvalidSchedule, ScheduleChanged
from dueline.model.text import shown
from dueline.protocol import keys
from dueline.retry.calls import Calls

A = TypeVar("A")


class Schedules:
    """The schedules of one queue, from `client.schedules(queue)`. Threads may share it.

    Every method retries as the client does, which is safe: a schedule is put as a whole, and `run` and `backfill` go
    under an idempotency key. Every error is a DuelineError. With `if_match`, the `etag` of a Schedule, a change is made
    only if nobody has changed the schedule since: otherwise it raises ScheduleChanged.
    """

    def __init__(self, asked: HttpSchedules, *, calls: Calls) -> None:
        self._asked = asked
        self._calls = calls

    def put(
        self,
        name: str,
        *,
        cron: str | None = None,
        every: timedelta | float | None = None,
        zone: str = "UTC",
        payload: object = None,
        start: datetime | None = None,
        end: datetime | None = None,
        count: int | None = None,
        tenant: str | None = None,
        priority: int = 1,
        jitter: timedelta | float = 0,
        catch_up: Literal["latest", "none", "all"] = "latest",
        overlap: Literal["allow", "skip"] = "allow",
        owner: str | None = None,
        description: str | None = None,
        if_match: str | None = None,
        only_new: bool = False,
    ) -> Schedule:
        """Create a schedule, or change it to this as a whole; return it. One that is so already stays as it is.

        It runs by `cron` in a `zone`, or `every` so often: 60 s at least, a timedelta or seconds. Each run is a job of
        that payload, tenant and priority. A paused schedule stays paused. With `only_new`, one that is there raises
        ScheduleChanged, even an identical one. Raises InvalidSchedule, QueueNotFound, TooManySchedules, TooManyChanges
        or ScheduleChanged.
        """
        rule = {"cron": cron, "every": every, "zone": zone, "start": start, "end": end, "count": count}
        job = {"tenant": tenant, "priority": priority, "jitter": jitter, "catch_up": catch_up, "overlap": overlap}
        body = body_of({**rule, **job, "owner": owner, "description": description}, payload=payload)
        if only_new:
            return self._create(name, body, if_match)
        return self._calls.ask(lambda: self._asked.put(name, body, if_match=if_match))

    def get(self, name: str) -> Schedule:
        """Return a schedule. Raises ScheduleNotFound or QueueNotFound."""
        return self._calls.ask(lambda: self._asked.get(name))

    def pause(self, name: str, *, if_match: str | None = None) -> Schedule:
        """Let a schedule make no runs after `effective_from`, until it is resumed; return it.

        Raises ScheduleNotFound or ScheduleChanged.
        """
        return self._calls.ask(lambda: self._asked.pause(name, if_match=if_match))

    def resume(self, name: str, *, if_match: str | None = None) -> Schedule:
        """Let a paused schedule make runs again, and return it. Nothing is caught up. Raises as `pause` does."""
        return self._calls.ask(lambda: self._asked.resume(name, if_match=if_match))

    def delete(self, name: str, *, if_match: str | None = None) -> Schedule:
        """Delete a schedule: it makes no runs after `effective_from`. Return how it was. Raises as `pause` does."""
        return self._calls.ask(lambda: self._asked.delete(name, if_match=if_match))

    def run(self, name: str, *, payload: object = ..., key: str | None = None) -> SubmittedRun:
        """Run a schedule now, paused or not, with its payload or another one; its own runs are not touched.

        Called again with the same `key`, it returns the run that is there, whatever the schedule is by then. Raises
        ScheduleNotFound or InvalidSchedule, or KeyReused for a key that went with another payload.
        """
        body = body_of({}) if payload is ... else body_of({}, payload=payload)
        return self._ask_under(_key(key), partial(self._asked.run, name, body))

    def backfill(self, name: str, *, start: datetime, end: datetime, key: str | None = None) -> Sequence[SubmittedRun]:
        """Run a schedule, now, for each instant of its rule from `start` to just before `end`, which has passed.

        At most 500, which may overlap. Called again with the same `key`, it returns the runs that are there, whatever
        the schedule is by then. Raises as `run` does, KeyReused for a key that went with another span.
        """
        body = body_of({"from": aware("start", start), "to": aware("end", end)})
        return self._ask_under(_key(key), partial(self._asked.backfill, name, body))

    def history(self, name: str, most: int = 10, *, before: datetime | None = None) -> Sequence[Run]:
        """Return the last runs whose time has come, 1 to 100 of them, the latest first.

        With `before`, those of earlier instants, those that are planned included; what is to come is `next` of a
        Schedule. Raises ScheduleNotFound or InvalidSchedule.
        """
        until = None if before is None else aware("before", before)
        return self._calls.ask(lambda: self._asked.history(name, most=most, before=until))

    def preview(
        self,
        *,
        cron: str | None = None,
        every: timedelta | float | None = None,
        zone: str = "UTC",
        start: datetime | None = None,
        end: datetime | None = None,
        count: int | None = None,
        after: datetime | None = None,
        most: int = 5,
    ) -> Sequence[NextRun]:
        """Return when a rule would run, `after` an instant or from now on. Nothing is made. Raises InvalidSchedule."""
        rule = {"cron": cron, "every": every, "zone": zone, "start": start, "end": end, "count": count}
        since = None if after is None else aware("after", after)
        body = body_of({**rule, "from": since, "limit": most})
        return self._calls.ask(lambda: self._asked.preview(body))

    def list(self) -> Iterator[Schedule]:
        """Yield the schedules by name. The next page is fetched when the last one is used up. Raises QueueNotFound."""
        return pages_of(self._calls, self._asked.page)

    def _create(self, name: str, body: str, if_match: str | None) -> Schedule:
        """Create a schedule. One that a try before made, whose answer was lost, is created, too."""
        if if_match is not None:
            raise InvalidSchedule(f"if_match is {shown(if_match)}: it must be None with only_new")
        tries = counted()

        def create() -> Schedule:
            is_again = next(tries) > 0
            try:
                return self._asked.create(name, body)
            except ScheduleChanged as refusal:
                if not is_again:
                    raise
                with suppress(ScheduleChanged):
                    return self._asked.same(name, body)
                raise refusal from None

        return self._calls.ask(create)

    def _ask_under(self, key: str, ask: Callable[..., A]) -> A:
        """Ask under a key; an error that may hide that it was carried out has that key."""
        try:
            return self._calls.ask(partial(ask, key=key))
        except RETRYABLE as error:
            error.key = key
            raise


def _key(key: str | None) -> str:
    """Return a key, which is made before the first try where none is given."""
    return str(uuid.uuid4()) if key is None else keys.checked(key)
