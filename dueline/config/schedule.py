"""One schedule, as a file declares it."""

import json
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dueline.errors import InvalidJob, InvalidSchedule
from dueline.model.job import MAX_PRIORITY
from dueline.model.nominal import SCHEDULE_NAME
from dueline.model.request import json_text
from dueline.schedules.definition import CatchUp, Definition, Overlap

ScheduleName = Annotated[str, Field(pattern=f"^{SCHEDULE_NAME}$")]


def _text(moment: Any) -> Any:
    """Return a time as text: YAML takes one that stands without quotes for a time of its own."""
    return moment.isoformat() if isinstance(moment, date) else moment


def _seconds(span: Any) -> Any:
    """Refuse a span as the command line takes it, and say how it is given here."""
    if isinstance(span, str):
        raise ValueError("must be in seconds, a number without quotes or a unit, such as 900")
    return span


_Instant = Annotated[str | None, BeforeValidator(_text)]


class Schedule(BaseModel):
    """One schedule: when it runs, by `cron` or `every`, and the job that each run is."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"oneOf": [{"required": ["cron"]}, {"required": ["every"]}]},
    )

    cron: str | None = Field(
        default=None, description="Five fields: minute, hour, day of month, month, day of week; or `@daily` and such."
    )
    every: Annotated[int, Field(ge=60), BeforeValidator(_seconds)] | None = Field(
        default=None, description="In place of `cron`: seconds between two runs, counted from `start`, or 1970."
    )
    zone: str = Field(default="UTC", description="The IANA time zone of `cron`, such as Europe/Berlin.")
    payload: Any = Field(default=None, description="The payload of each run, 8 KiB at most when compressed.")
    start: _Instant = Field(default=None, description="No run is before it: ISO 8601 with a zone, in whole seconds.")
    end: _Instant = Field(default=None, description="All runs are before it.")
    count: int | None = Field(default=None, ge=1, le=1000, description="How many runs there are from `start` on.")
    tenant: str | None = Field(default=None, description="Whose jobs they are.")
    priority: int = Field(default=1, ge=1, le=MAX_PRIORITY, description="The priority of its jobs.")
    jitter: Annotated[int, BeforeValidator(_seconds)] = Field(
        default=0, ge=0, description="Seconds over which the runs of schedules are spread."
    )
    catch_up: Annotated[CatchUp, Field(strict=False)] = Field(
        default=CatchUp.LATEST, description="Which runs are made up for that were missed."
    )
    overlap: Annotated[Overlap, Field(strict=False)] = Field(
        default=Overlap.ALLOW, description="`skip`: a run does not begin while another one is under way."
    )
    description: str | None = Field(default=None, description="What it is for.")

    @model_validator(mode="after")
    def _is_one_that_runs(self) -> Self:
        _ = self.definition
        return self

    @cached_property
    def definition(self) -> Definition:
        """What the schedule is. Raises InvalidSchedule."""
        given = {name: value for name, value in self.model_dump().items() if value is not None}
        try:
            return Definition.from_dict({**given, "payload": json_text(self.payload)})
        except InvalidJob as error:
            raise InvalidSchedule(str(error)) from None

    @cached_property
    def declared(self) -> str:
        """The definition as the template of its queue's stack has it."""
        return json.dumps(self.definition.to_dict(), separators=(",", ":"))
