"""What is told of a queue's pause and rate, as the bodies of HTTP answers."""

from typing import Annotated

from pydantic import Field

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.lookup.control import Control

QueueName = Annotated[str, Field(description="The queue's name in queues.yaml.", examples=["emails"])]


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


def of_control(queue: str, control: Control) -> ControlAnswer:
    return {"queue": queue, **told_of_control(control)}


def told_of_control(control: Control) -> Controls:
    return {"paused": control.paused, "rate": None if control.rate is None else str(control.rate)}
