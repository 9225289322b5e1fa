"""Jobs and queues as a client returns them, and how they are read from the API's answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

from dueline.errors import Unavailable
from dueline.lookup.control import Control
from dueline.lookup.overview import Overview
from dueline.lookup.status import Status
from dueline.model import instant
from dueline.model.job import JobId, Route, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate
from dueline.ports import Depth

A = TypeVar("A")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job as the client returns it: its id, its queue, when it is due (in UTC), its route there, and its state.

    `moved_to` is the id of the job that replaced it, if it was rescheduled. If its queue is set to `track` its jobs and
    a worker has received it: how many `attempts` there were, when the last one `started` and `ended`, and its `error`
    if it failed. If it was looked up or listed, and a schedule planned it: that `schedule`, and the `nominal`, the
    instant of its rule.
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
    schedule: str | None = None
    nominal: datetime | None = None

    @classmethod
    def of(cls, answer: Any) -> Self:
        """Return the job in an answer. Raises Unavailable when it holds none."""
        return read_from(cls._of, answer, what="job")

    @classmethod
    def known(cls, id: JobId, status: Status) -> "Job":
        """Return the job with that id and what is known of it."""
        noted = {} if status.outcome is None else {name: getattr(status.outcome, name) for name in _OUTCOME}
        return Job(
            id=str(id),
            queue=id.queue,
            due=id.due,
            route=id.route,
            state=status.state,
            moved_to=None if status.moved_to is None else str(status.moved_to),
            schedule=status.schedule,
            nominal=status.nominal,
            **noted,
        )

    @classmethod
    def _of(cls, answer: Mapping[str, Any]) -> Self:
        return cls(
            id=text_of(answer["id"]),
            queue=text_of(answer["queue"]),
            due=instant.parse(answer["due"]),
            route=Route[text_of(answer["route"]).upper()],
            state=State(answer["state"]),
            moved_to=text_of(answer["moved_to"]) if "moved_to" in answer else None,
            schedule=text_of(answer["schedule"]) if "schedule" in answer else None,
            nominal=instant.parse(answer["nominal"]) if "nominal" in answer else None,
            **outcome_of(answer),
            **cls._further_fields(answer),
        )

    @classmethod
    def _further_fields(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the further fields of a subclass."""
        return {}


def outcome_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of attempts, as far as an answer has them."""
    return {name: read(answer[name]) for name, read in _OUTCOME.items() if name in answer}


@dataclass(frozen=True, kw_only=True, slots=True)
class BegunUpload:
    """An upload: its id, and the URL and the headers of the PUT that sends it."""

    id: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


def upload_of(answer: Any) -> BegunUpload:
    """Return the upload in an answer. Raises Unavailable when it holds none."""
    return read_from(
        lambda begun: BegunUpload(id=text_of(begun["upload"]), url=text_of(begun["url"]), headers={**begun["headers"]}),
        answer,
        what="upload",
    )


def queues_of(answer: Any) -> list[QueueSettings]:
    """Return the queues in an answer. Raises Unavailable when it holds none."""
    return read_from(lambda listed: [_settings_of(queue) for queue in listed["queues"]], answer, what="queues")


def overview_of(answer: Any) -> Overview:
    """Return the overview of a queue in an answer. Raises Unavailable when it holds none."""
    return read_from(_overview_of, answer, what="queue")


def control_of(answer: Any) -> Control:
    """Return a queue's pause and rate in an answer. Raises Unavailable when it holds none."""
    return read_from(_control_of, answer, what="pause and rate")


def _settings_of(answer: Mapping[str, Any]) -> QueueSettings:
    return QueueSettings(
        name=text_of(answer["queue"]),
        partitions=answer["partitions"],
        retention=timedelta(seconds=answer["retention"]),
        precise=answer["precise"],
        priorities=answer["priorities"],
        track=answer.get("track", False),
    )


def _overview_of(answer: Mapping[str, Any]) -> Overview:
    return Overview(
        scheduled=answer["scheduled"],
        more_scheduled=answer["more_scheduled"],
        next_due=None if answer["next_due"] is None else instant.parse(answer["next_due"]),
        fence_age=answer["fence_age"],
        # A queue with one priority has its depth beside the other fields.
        levels=tuple(_depth_of(level) for level in answer.get("levels", [answer])),
        dead=answer["dead"],
        control=_control_of(answer),
    )


def _control_of(answer: Mapping[str, Any]) -> Control:
    rate = None if answer["rate"] is None else Rate.parse(text_of(answer["rate"]))
    return Control(paused=bool(answer["paused"]), rate=rate)


def _depth_of(answer: Mapping[str, Any]) -> Depth:
    return Depth(waiting=answer["waiting"], in_flight=answer["in_flight"], delayed=answer["delayed"])


def read_from(read: Callable[[Any], A], answer: Any, *, what: str) -> A:
    """Return what `read` finds in an answer. Raises Unavailable when that is not as it should be."""
    try:
        return read(answer)
    except (LookupError, TypeError, ValueError, OverflowError) as fault:
        # The text of a ValueError may quote the answer.
        raise Unavailable(f"the answer holds no {what}: {type(fault).__name__}") from None


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def number_of(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


# The fields of attempts, and how each is read.
_OUTCOME: Mapping[str, Callable[[Any], Any]] = {
    "attempts": number_of,
    "started": instant.parse,
    "ended": instant.parse,
    "error": text_of,
}
