"""What a client is told of jobs and queues, as values, and how they are read from the API's answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

from dueline.errors import Unavailable
from dueline.lookup.control import Control
from dueline.lookup.outcome import Outcome
from dueline.lookup.overview import Overview
from dueline.model import instant
from dueline.model import job as core
from dueline.model.job import JobId, Route, State
from dueline.model.pointer import Pointer
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate
from dueline.model.request import json_text
from dueline.ports import Depth

A = TypeVar("A")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job as it is told of: its id, its queue, when it is due (in UTC), its route there, and its state.

    `moved_to` is the id of the job that took its place, if it was rescheduled. Once workers have it, and its queue
    tracks: how many `attempts` there were, when the last one `started` and `ended`, and its `error` if it failed.
    """

    id: str
    queue: str
    due: datetime
    route: Route
    state: State
    moved_to: str | None = None
    attempts: int | None = None
    started: datetime | None = None
    ended: datetime | None = None
    error: str | None = None

    @classmethod
    def of(cls, told: Any) -> Self:
        """Return the job that an answer tells of. Raises Unavailable when it tells of none."""
        return _read(cls._of, told, what="job")

    @classmethod
    def known(cls, id: JobId, state: State, *, moved_to: JobId | None = None, outcome: Outcome | None = None) -> "Job":
        """Return what is told of the job of that id."""
        moved = None if moved_to is None else str(moved_to)
        noted = {} if outcome is None else {name: getattr(outcome, name) for name in _OUTCOME}
        return Job(id=str(id), queue=id.queue, due=id.due, route=id.route, state=state, moved_to=moved, **noted)

    @classmethod
    def _of(cls, told: Mapping[str, Any]) -> Self:
        return cls(
            id=_text(told["id"]),
            queue=_text(told["queue"]),
            due=instant.parse(told["due"]),
            route=Route[_text(told["route"]).upper()],
            state=State(told["state"]),
            moved_to=_text(told["moved_to"]) if "moved_to" in told else None,
            **_outcome_of(told),
            **cls._more_of(told),
        )

    @classmethod
    def _more_of(cls, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a kind of job has beyond this."""
        return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class PayloadPlace:
    """Where a large payload is kept: an object of so many bytes in a bucket of S3."""

    bucket: str
    key: str
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledJob(Job):
    """A job that waits in the table, with its `payload`, or where that is kept (`payload_at`).

    A payload that is no JSON is told in `payload_text`.
    """

    payload: object = field(default=None, repr=False)
    payload_text: str | None = field(default=None, repr=False)
    payload_at: PayloadPlace | None = None

    @classmethod
    def waiting(cls, job: core.Job) -> "ScheduledJob":
        """Return what is told of a job that waits in the table."""
        at = {"id": str(job.id), "queue": job.id.queue, "route": job.id.route, "state": State.SCHEDULED}
        told: dict[str, Any] = at | {"due": job.id.due} | _payload_of(payload_told(job))
        return cls(**told)

    @classmethod
    def _more_of(cls, told: Mapping[str, Any]) -> dict[str, Any]:
        return _payload_of(told)


def _outcome_of(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: read(told[name]) for name, read in _OUTCOME.items() if name in told}


def _payload_of(told: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: told[name] for name in ("payload", "payload_text") if name in told}
    return known | ({"payload_at": PayloadPlace(**told["payload_at"])} if "payload_at" in told else {})


def payload_told(job: core.Job) -> dict[str, Any]:
    """Return a payload as JSON, or where it is kept, or as text where it is none of them.

    Whoever sends to the inbound queue may send any text.
    """
    try:
        if job.offloaded_bytes is not None:
            place = Pointer.parse(job.payload)
            return {"payload_at": {"bucket": place.bucket, "key": place.key, "bytes": job.offloaded_bytes}}
        value = json.loads(job.payload)
        json_text({"jobs": [{"payload": value}]})  # what cannot be told again, such as NaN, fails here and not below
    except (ValueError, RecursionError):
        return {"payload_text": job.payload}
    return {"payload": value}


@dataclass(frozen=True, kw_only=True, slots=True)
class BegunUpload:
    """An upload: its id, and the URL and the headers of the PUT that sends it."""

    id: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


def upload_of(told: Any) -> BegunUpload:
    """Return the upload that an answer tells of. Raises Unavailable when it tells of none."""
    return _read(
        lambda answer: BegunUpload(id=_text(answer["upload"]), url=_text(answer["url"]), headers={**answer["headers"]}),
        told,
        what="upload",
    )


def page_of(told: Any) -> tuple[list[ScheduledJob], str]:
    """Return the jobs of a page, and where the next one begins: "" after the last. Raises Unavailable."""
    return _read(lambda page: ([ScheduledJob.of(job) for job in page["jobs"]], page["next"] or ""), told, what="jobs")


def queues_of(told: Any) -> list[QueueSettings]:
    """Return the queues that an answer tells of. Raises Unavailable when it tells of none."""
    return _read(lambda answer: [_settings_of(queue) for queue in answer["queues"]], told, what="queues")


def overview_of(told: Any) -> Overview:
    """Return how a queue is doing, as an answer tells it. Raises Unavailable when it does not."""
    return _read(_overview_of, told, what="queue")


def control_of(told: Any) -> Control:
    """Return what holds for a queue's workers, as an answer tells it. Raises Unavailable when it does not."""
    return _read(_control_of, told, what="pause and rate")


def _settings_of(told: Mapping[str, Any]) -> QueueSettings:
    return QueueSettings(
        name=_text(told["queue"]),
        partitions=told["partitions"],
        retention=timedelta(seconds=told["retention"]),
        precise=told["precise"],
        priorities=told["priorities"],
        track=told.get("track", False),
    )


def _overview_of(told: Mapping[str, Any]) -> Overview:
    return Overview(
        scheduled=told["scheduled"],
        more_scheduled=told["more_scheduled"],
        next_due=None if told["next_due"] is None else instant.parse(told["next_due"]),
        fence_age=told["fence_age"],
        # A queue of one level tells its depth alone.
        levels=tuple(_depth_of(level) for level in told.get("levels", [told])),
        dead=told["dead"],
        control=_control_of(told),
    )


def _control_of(told: Mapping[str, Any]) -> Control:
    rate = None if told["rate"] is None else Rate.parse(_text(told["rate"]))
    return Control(paused=bool(told["paused"]), rate=rate)


def _depth_of(told: Mapping[str, Any]) -> Depth:
    return Depth(waiting=told["waiting"], in_flight=told["in_flight"], delayed=told["delayed"])


def _read(of: Callable[[Any], A], told: Any, *, what: str) -> A:
    try:
        return of(told)
    except (LookupError, TypeError, ValueError) as fault:
        # The text of a ValueError may quote what was told.
        raise Unavailable(f"the answer tells of no {what}: {type(fault).__name__}") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


# What is told of attempts, and how it is read.
_OUTCOME: Mapping[str, Callable[[Any], Any]] = {
    "attempts": _number,
    "started": instant.parse,
    "ended": instant.parse,
    "error": _text,
}
