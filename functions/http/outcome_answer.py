"""What is told of a job's attempts, where its queue tracks: part of the body of an HTTP answer."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from dueline.lookup.outcome import MAX_ERROR_CHARACTERS, Outcome
from dueline.model import instant

_AN_INSTANT = {"format": "date-time"}


class OutcomeAnswer(TypedDict):
    """What workers noted of a job: nothing before its first attempt."""

    attempts: NotRequired[Annotated[int, Field(ge=1, description="How often it was tried.", examples=[2])]]
    started: NotRequired[
        Annotated[
            str,
            Field(
                json_schema_extra=_AN_INSTANT,
                description="When the last attempt began, in UTC.",
                examples=["2027-01-04T08:00:00.417Z"],
            ),
        ]
    ]
    ended: NotRequired[
        Annotated[
            str,
            Field(
                json_schema_extra=_AN_INSTANT,
                description="When it ended, in UTC; not of one that runs.",
                examples=["2027-01-04T08:00:01.102Z"],
            ),
        ]
    ]
    error: NotRequired[
        Annotated[
            str,
            Field(
                max_length=MAX_ERROR_CHARACTERS,
                description="Why it failed: the type of an error, or a short reason.",
                examples=["TimeoutError"],
            ),
        ]
    ]


def of_outcome(outcome: Outcome) -> OutcomeAnswer:
    told = OutcomeAnswer(attempts=outcome.attempts, started=instant.text(outcome.started))
    if outcome.ended is not None:
        told["ended"] = instant.text(outcome.ended)
    if outcome.error is not None:
        told["error"] = outcome.error
    return told
