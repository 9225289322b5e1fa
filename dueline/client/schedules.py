"""Schedules and their runs as a client returns them, and the calls to create, change, list, pause and run them."""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count as counted
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlencode

from dueline.client.models import read_fields, reader, text_of, warn_of_unreadable
from dueline.core import instant
from dueline.core.job import checked_schedule_name
from dueline.core.keys import checked_call
from dueline.core.request import Default, json_text
from dueline.core.retry import Calls
from dueline.core.text import shown
from dueline.errors import RETRYABLE, InvalidJob, InvalidSchedule, ScheduleChanged

A = TypeVar("A")


@dataclass(frozen=True, kw_only=True, slots=True)
class NextRun:
    """When a schedule runs: the instant that its rule names, in UTC, and the same in its zone. Jitter is left out."""

    scheduled_for: datetime
    local: datetime

    @classmethod
    def of(cls, response: Mapping[str, Any]) -> Self:
        """Return the next run in a part of a response."""
        return read_fields(cls, response, local=datetime.fromisoformat(response["local"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A schedule as it is after a call.

    Each change makes a new `generation`, which serves after `effective_from`: up to there what was before it serves,
    never both, never neither. `next` are its next five runs: none while it is `paused`, or once it is `deleted`. Runs
    up to `planned_to` are made. `etag` names the generation: given as `if_match`, it lets a change through only if
    nobody has changed the schedule since. `words` are its rule in words. The other fields are those that `put` takes.
    """

    queue: str
    name: str
    cron: str | None = None
    every: timedelta | None = None
    zone: str
    start: datetime | None = None
    end: datetime | None = None
    count: int | None = None
    payload: object = field(default=None, repr=False)
    kind: str | None = None
    tenant: str | None = None
    priority: int
    jitter: timedelta
    catch_up: str
    overlap: str
    owner: str | None = None
    generation: int
    effective_from: datetime
    paused: bool
    deleted: bool
    planned_to: datetime
    next: tuple[NextRun, ...]
    etag: str

    @classmethod
    @reader("schedule")
    def of(cls, response: Mapping[str, Any]) -> Self:
        """Return the schedule in a response. Raises Unavailable when it holds none."""
        return read_fields(cls, response, name=text_of(response["schedule"]), payload=response["payload"])


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmittedRun:
    """A job that was made on demand: its id, and the instant that it is made for."""

    id: str
    scheduled_for: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run of a schedule, and how far it has come.

    `state` is `planned` (in the table), `dispatched` (in its queue), `cancelled`, `parked`, `missed` (not caught up) or
    `forgotten` (past its retention); in a queue that is set to `track` also `running`, `succeeded`, `failed` or
    `skipped`, with the fields of attempts as a Job has them. `lateness` is in seconds, from due to the last start.
    """

    id: str
    scheduled_for: datetime
    generation: int
    state: str
    attempts: int | None = None
    started: datetime | None = None
    ended: datetime | None = None
    error: str | None = None
    lateness: float | None = None


@reader("schedules")
def _page_of(response: Mapping[str, Any]) -> tuple[list[Schedule], str]:
    """Return the schedules of a page, and where the next one begins: "" after the last. Raises Unavailable."""
    warn_of_unreadable(response)
    return [Schedule.of(each) for each in response["schedules"]], response["next"] or ""


@reader("runs")
def _runs_of(kind: type[A], response: Mapping[str, Any]) -> list[A]:
    """Return the runs in a response. Raises Unavailable when it holds none."""
    return [read_fields(kind, each) for each in response["runs"]]


_read_run = reader("run")(partial(read_fields, SubmittedRun))


_PAGE_SIZE = 100
_ETAG = r"[!-~]{1,200}"
_INSTANTS = ("start", "end", "from", "to")


class Schedules:
    """The schedules of one queue, from `client.schedules(queue)`. Threads may share it.

    Every method retries as the client does, which is safe: a schedule is put as a whole, and `run` and `backfill` go
    under an idempotency key. Every error is a DuelineError. With `if_match`, the `etag` of a Schedule, a change is made
    only if nobody has changed the schedule since: otherwise it raises ScheduleChanged.
    """

    def __init__(
        self, queue: str, request: Callable[..., dict[str, Any]], *, calls: Calls, default: Default | None = None
    ) -> None:
        self._path, self._default = f"/queues/{queue}/schedules", default
        self._request = request
        self._calls = calls

    def put(
        self,
        name: str,
        cron: str | None = None,
        *,
        every: timedelta | float | str | None = None,
        zone: str = "UTC",
        payload: object = None,
        start: datetime | None = None,
        end: datetime | None = None,
        count: int | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        priority: int = 1,
        jitter: timedelta | float | str = 0,
        catch_up: Literal["latest", "none", "all"] = "latest",
        overlap: Literal["allow", "skip"] = "allow",
        owner: str | None = None,
        if_match: str | None = None,
    ) -> Schedule:
        """Create a schedule, or change it to this as a whole; return it. One that is so already stays as it is.

        It runs by `cron` in a `zone`, or `every` so often: 60 s at least, a timedelta, seconds or such as "15m". Each
        run is a job of that payload, kind, tenant and priority. A paused schedule stays paused. Raises
        InvalidSchedule, QueueNotFound, TooManySchedules, TooManyChanges or ScheduleChanged.
        """
        rule = {"cron": cron, "every": every, "zone": zone, "start": start, "end": end, "count": count}
        job = {"kind": kind, "tenant": tenant, "priority": priority, "jitter": jitter, "catch_up": catch_up}
        body = _json_of({**rule, **job, "overlap": overlap, "owner": owner}, default=self._default, payload=payload)
        return self._change("PUT", self._path_of(name), body, if_match=if_match)

    def get(self, name: str) -> Schedule:
        """Return a schedule. Raises ScheduleNotFound or QueueNotFound."""
        return self._send("GET", self._path_of(name), read=Schedule.of)

    def pause(self, name: str, *, if_match: str | None = None) -> Schedule:
        """Let a schedule make no runs after `effective_from`, until it is resumed; return it.

        Raises ScheduleNotFound or ScheduleChanged.
        """
        return self._change("POST", f"{self._path_of(name)}/pause", if_match=if_match)

    def resume(self, name: str, *, if_match: str | None = None) -> Schedule:
        """Let a paused schedule make runs again, and return it. Nothing is caught up. Raises as `pause` does."""
        return self._change("POST", f"{self._path_of(name)}/resume", if_match=if_match)

    def delete(self, name: str, *, if_match: str | None = None) -> Schedule:
        """Delete a schedule: it makes no runs after `effective_from`. Return how it was. Raises as `pause` does."""
        return self._change("DELETE", self._path_of(name), if_match=if_match)

    def run(self, name: str, *, payload: object = ..., idempotency_key: str | None = None) -> SubmittedRun:
        """Run a schedule now, paused or not, with its payload or another one; its own runs are not touched.

        Called again with the same `idempotency_key`, it returns the run that is there, whatever the schedule is by
        then. Raises ScheduleNotFound or InvalidSchedule, or KeyReused for one that went with another payload.
        """
        body = None if payload is ... else _json_of({}, default=self._default, payload=payload)
        return self._send_named(f"{self._path_of(name)}/run", body, _read_run, call=idempotency_key)

    def backfill(
        self, name: str, *, start: datetime, end: datetime, idempotency_key: str | None = None
    ) -> Sequence[SubmittedRun]:
        """Run a schedule, now, for each instant of its rule from `start` to just before `end`, which has passed.

        At most 500, which may overlap. Called again with the same `idempotency_key`, it returns the runs that are
        there. Raises as `run` does, KeyReused for one that went with another span, or before the rule was changed.
        """
        body = _json_of({"from": _aware("start", start), "to": _aware("end", end)})
        return self._send_named(
            f"{self._path_of(name)}/backfill", body, partial(_runs_of, SubmittedRun), call=idempotency_key
        )

    def history(self, name: str, most: int = 10, *, before: datetime | None = None) -> Sequence[Run]:
        """Return the last runs whose time has come, 1 to 100 of them, the latest first.

        With `before`, those of earlier instants, those that are planned included; what is to come is `next` of a
        Schedule. Raises ScheduleNotFound or InvalidSchedule.
        """
        query = {"limit": str(most)} | ({} if before is None else {"before": instant.text(_aware("before", before))})
        return self._send("GET", f"{self._path_of(name)}/history?{urlencode(query)}", read=partial(_runs_of, Run))

    def list(self) -> Iterator[Schedule]:
        """Yield the schedules by name. The next page is fetched when the last one is used up. Raises QueueNotFound."""
        return paginate(self._page)

    def _page(self, after: str) -> tuple[Sequence[Schedule], str]:
        query = {"limit": str(_PAGE_SIZE), **({"next": after} if after else {})}
        return self._send("GET", f"{self._path}?{urlencode(query)}", read=_page_of)

    def _change(self, method: str, path: str, body: str | None = None, *, if_match: str | None) -> Schedule:
        """Change a schedule. One that is so already, though its etag is another, may be so by an earlier try."""
        tries = counted()

        def change() -> Schedule:
            is_retry = next(tries) > 0
            answer = self._request(method, path, body, headers=_matching(if_match))
            schedule = Schedule.of(answer)
            matches = if_match in (None, "*", schedule.etag)
            if answer.get("changed") is False and not (matches or is_retry):
                now = f"schedule {schedule.queue}/{schedule.name} is {schedule.etag} now"
                raise ScheduleChanged(f"{now}, and if_match is {shown(if_match)}: read it again")
            return schedule

        return self._calls.run(change)

    def _send_named(self, path: str, body: str | None, read: Callable[[Any], A], *, call: str | None) -> A:
        """Post under the name of the call, which is made before the first try; an error of a try has it."""
        call = str(uuid.uuid4()) if call is None else checked_call(call)
        try:
            return self._send("POST", path, body, read=read, headers={"idempotency-key": call})
        except RETRYABLE as error:
            error.idempotency_key = call
            raise

    def _send(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        read: Callable[[Any], A],
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> A:
        return self._calls.run(lambda: read(self._request(method, path, body, headers=headers)))

    def _path_of(self, name: str) -> str:
        return f"{self._path}/{checked_schedule_name(name)}"


def _matching(if_match: str | None) -> Mapping[str, str]:
    if if_match is None:
        return {}
    if not (isinstance(if_match, str) and re.fullmatch(_ETAG, if_match)):
        raise InvalidSchedule(f"if_match is {shown(if_match)}: it must be the etag of a schedule, or *")
    return {"if-match": if_match}


# What a rule may be, the API checks, so that a client need not compute it.
def _json_of(fields: Mapping[str, Any], *, default: Default | None = None, **payload: object) -> str:
    """Return fields as JSON text, without those that are None, with the payload, if any. Raises InvalidSchedule."""
    values = {name: _plain(name, value) for name, value in fields.items() if value is not None}
    try:
        return json_text(values | payload, default=default)
    except InvalidJob as error:
        raise InvalidSchedule(str(error)) from None


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, timedelta):
        return instant.seconds(value)
    return _aware(name, value).isoformat() if name in _INSTANTS else value


def _aware(name: str, value: object) -> datetime:
    """Return an instant. Raises InvalidSchedule unless it is a datetime with a time zone."""
    with suppress(OverflowError):
        if isinstance(value, datetime) and value.utcoffset() is not None and value.astimezone(UTC):
            return value
    raise InvalidSchedule(f"{name} is {shown(value)}: it must be a datetime with a time zone, from year 1 to 9999")


def paginate(read_page: Callable[[str], tuple[Sequence[A], str]]) -> Iterator[A]:
    """Yield the items of pages: of the first, "", and of each that the one before names, read once that is used up."""
    items, after = read_page("")
    yield from items
    while after:
        items, after = read_page(after)
        yield from items
