"""The bodies of HTTP answers about queues; docs/openapi.json is written from their types."""

from typing import Annotated, NotRequired, cast

from pydantic import Field

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.config.registry import Registry, settings_of
from dueline.lookup.control import Control
from dueline.lookup.overview import MOST_COUNTED, Overview
from dueline.model import instant
from dueline.model.job import MAX_PRIORITY
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Depth
from functions.http.job_answers import Instant, QueueName

Count = Annotated[int, Field(ge=0, examples=[3])]


class Controls(TypedDict):
    """How a queue's workers are controlled."""

    paused: Annotated[bool, Field(description="Its workers begin no job until it is resumed.", examples=[False])]
    rate: Annotated[
        str | None,
        Field(
            description="How many jobs its workers begin in all, in a second, a minute or an hour; null: no limit.",
            examples=["50/s"],
        ),
    ]


class ControlAnswer(Controls):
    """A queue, and what holds for its workers."""

    queue: QueueName


class QueueAnswer(TypedDict):
    """A queue and its settings, as far as callers need them.

    The id of a job has a partition that takes jobs, and route `d` if it is due within the direct horizon, or else `t`.
    """

    queue: QueueName
    partitions: Annotated[int, Field(ge=1, description="Slices of the queue, each with its own tick.", examples=[1])]
    retention: Annotated[
        int,
        Field(
            ge=1, description="Seconds after its due time that a job is kept and may still be sent.", examples=[604800]
        ),
    ]
    precise: Annotated[
        bool, Field(description="Jobs come up to 1.25 s early: its workers wait that out.", examples=[False])
    ]
    priorities: Annotated[
        int, Field(ge=1, le=MAX_PRIORITY, description="Its levels, each an SQS queue of its own.", examples=[1])
    ]
    track: Annotated[bool, Field(description="Look-ups tell what its workers noted of a job.", examples=[False])]
    taking: Annotated[
        int | None,
        Field(
            ge=0,
            description="How many of its partitions take jobs now, those from 0 on: none before it is deployed;"
            " null while that is not known.",
            examples=[1],
        ),
    ]
    direct_horizon: Annotated[
        int, Field(ge=1, description="Seconds up to which a due job goes straight to its queue.", examples=[890])
    ]


class Queues(TypedDict):
    """All queues of the deployment."""

    queues: Annotated[list[QueueAnswer], Field(description="The queues, each with its settings.")]


class DepthAnswer(TypedDict):
    """How many jobs are on SQS."""

    waiting: Annotated[Count, Field(description="Jobs in the queue, for workers to receive.")]
    in_flight: Annotated[Count, Field(description="Jobs that workers have received and not deleted.")]
    delayed: Annotated[Count, Field(description="Jobs in the queue that are due in a moment.")]


class LevelAnswer(DepthAnswer):
    """How many jobs of one priority are on SQS."""

    priority: Annotated[int, Field(ge=1, le=MAX_PRIORITY, description="1 is the most urgent.", examples=[1])]


class OverviewAnswer(QueueAnswer, DepthAnswer, Controls):
    """A queue, its settings, and how many of its jobs are where. What SQS counts is its own estimate."""

    scheduled: Annotated[Count, Field(description=f"Jobs in the table, counted up to {MOST_COUNTED:,}.")]
    more_scheduled: Annotated[bool, Field(description="There may be more of them.", examples=[False])]
    next_due: Annotated[Instant | None, Field(description="When the earliest of them is due; null without any.")]
    fence_age: Annotated[
        float | None,
        Field(
            ge=0,
            description="Seconds since the oldest fence of its partitions was raised, about a minute if all is well;"
            " null while one of them has none, for want of a tick.",
            examples=[42.5],
        ),
    ]
    levels: NotRequired[Annotated[list[LevelAnswer], Field(description="The same of each level, if it has several.")]]
    dead: Annotated[Count, Field(description="Jobs in its dead-letter queue.")]


def queue_answer(queue: QueueSettings, *, taking: int | None, direct_horizon: int) -> QueueAnswer:
    answer = {"queue": queue.name, **settings_of(queue), "taking": taking, "direct_horizon": direct_horizon}
    return cast(QueueAnswer, answer)


def queues_answer(registry: Registry, *, direct_horizon: int) -> Queues:
    taking = registry.taking_counts()
    answers = [
        queue_answer(queue, taking=taking.get(name), direct_horizon=direct_horizon)
        for name, queue in registry.queues.items()
    ]
    return {"queues": answers}


def overview_answer(
    queue: QueueSettings, overview: Overview, *, taking: int | None, direct_horizon: int
) -> OverviewAnswer:
    """Return a queue with its counts, and those of each of its levels, if it has several."""
    levels = [LevelAnswer(priority=number, **_depth(depth)) for number, depth in enumerate(overview.levels, start=1)]
    answer = {
        **queue_answer(queue, taking=taking, direct_horizon=direct_horizon),
        "scheduled": overview.scheduled,
        "more_scheduled": overview.more_scheduled,
        "next_due": None if overview.next_due is None else instant.text(overview.next_due),
        "fence_age": overview.fence_age,
        **_depth(overview.depth),
        "dead": overview.dead,
        **controls(overview.control),
    }
    return cast(OverviewAnswer, answer | ({"levels": levels} if len(levels) > 1 else {}))


def _depth(depth: Depth) -> DepthAnswer:
    return {"waiting": depth.waiting, "in_flight": depth.in_flight, "delayed": depth.delayed}


def control_answer(queue: str, control: Control) -> ControlAnswer:
    return {"queue": queue, **controls(control)}


def controls(control: Control) -> Controls:
    return {"paused": control.paused, "rate": None if control.rate is None else str(control.rate)}
