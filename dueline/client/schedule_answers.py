"""Schedules and their runs as a client returns them, and how they are read from the API's answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from dueline.client.answers import number_of, outcome_of, read_from, text_of
from dueline.model import instant


@dataclass(frozen=True, kw_only=True, slots=True)
class NextRun:
    """When a schedule runs: the instant that its rule names, in UTC, and the same in its zone. Jitter is left out.

    `clock` says what a change of the clock has to do with it, if anything.
    """

    nominal: datetime
    local: datetime
    clock: str | None = None

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Self:
        clock = text_of(answer["clock"]) if "clock" in answer else None
        return cls(nominal=instant.parse(answer["nominal"]), local=datetime.fromisoformat(answer["local"]), clock=clock)


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
    tenant: str | None = None
    priority: int
    jitter: timedelta
    catch_up: str
    overlap: str
    owner: str | None = None
    description: str | None = None
    generation: int
    effective_from: datetime
    paused: bool
    deleted: bool
    planned_to: datetime
    next: tuple[NextRun, ...]
    etag: str
    words: str | None = None

    @classmethod
    def of(cls, answer: Any) -> Self:
        """Return the schedule in an answer. Raises Unavailable when it holds none."""
        return read_from(cls._of, answer, what="schedule")

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Self:
        given = {name: read(answer[name]) for name, read in _FIELDS.items()}
        given |= {name: read(answer[name]) for name, read in _MAYBE.items() if name in answer}
        return cls(name=text_of(answer["schedule"]), payload=answer["payload"], **given)


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmittedRun:
    """A job that was made on demand: its id, and the instant that it is made for."""

    id: str
    nominal: datetime

    @classmethod
    def of(cls, answer: Any) -> Self:
        """Return the run in an answer. Raises Unavailable when it holds none."""
        return read_from(cls._of, answer, what="run")

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Self:
        return cls(id=text_of(answer["id"]), nominal=instant.parse(answer["nominal"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run of a schedule, and how far it has come.

    `state` is `planned` (in the table), `dispatched` (in its queue), `cancelled`, `parked`, `missed` (not caught up) or
    `forgotten` (past its retention); in a queue that is set to `track` also `running`, `succeeded`, `failed` or
    `skipped`, with the fields of attempts as a Job has them. `lateness` is in seconds, from due to the last start.
    """

    id: str
    nominal: datetime
    generation: int
    state: str
    attempts: int | None = None
    started: datetime | None = None
    ended: datetime | None = None
    error: str | None = None
    lateness: float | None = None

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Self:
        lateness = float(answer["lateness"]) if "lateness" in answer else None
        return cls(
            id=text_of(answer["id"]),
            nominal=instant.parse(answer["nominal"]),
            generation=number_of(answer["generation"]),
            state=text_of(answer["state"]),
            lateness=lateness,
            **outcome_of(answer),
        )


def page_of(answer: Any) -> tuple[list[Schedule], str]:
    """Return the schedules of a page, and where the next one begins: "" after the last. Raises Unavailable."""
    return read_from(
        lambda page: ([Schedule.of(each) for each in page["schedules"]], page["next"] or ""), answer, what="schedules"
    )


def submitted_of(answer: Any) -> list[SubmittedRun]:
    """Return the runs that were made. Raises Unavailable when an answer holds none."""
    return read_from(lambda made: [SubmittedRun.of(each) for each in made["runs"]], answer, what="runs")


def history_of(answer: Any) -> list[Run]:
    """Return the runs in an answer. Raises Unavailable when it holds none."""
    return read_from(lambda told: [Run._of(each) for each in told["runs"]], answer, what="runs")


def next_of(answer: Any) -> list[NextRun]:
    """Return the next runs in an answer. Raises Unavailable when it holds none."""
    return read_from(lambda told: list(_next(told["next"])), answer, what="next runs")


def _next(answer: Any) -> tuple[NextRun, ...]:
    return tuple(NextRun._of(each) for each in answer)


def _span(seconds: object) -> timedelta:
    return timedelta(seconds=number_of(seconds))


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "queue": text_of,
    "zone": text_of,
    "priority": number_of,
    "jitter": _span,
    "catch_up": text_of,
    "overlap": text_of,
    "generation": number_of,
    "effective_from": instant.parse,
    "paused": bool,
    "deleted": bool,
    "planned_to": instant.parse,
    "next": _next,
    "etag": text_of,
}
_MAYBE: Mapping[str, Callable[[Any], Any]] = {
    "cron": text_of,
    "every": _span,
    "start": instant.parse,
    "end": instant.parse,
    "count": number_of,
    "tenant": text_of,
    "owner": text_of,
    "description": text_of,
    "words": text_of,
}
