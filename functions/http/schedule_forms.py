"""The forms of requests about schedules. What a rule may be, the core says."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from dueline.model.request import FURTHEST
from dueline.schedules.definition import MAX_LABEL_CHARACTERS, CatchUp, Overlap
from dueline.schedules.reading import MOST_HEADS, MOST_RUNS
from functions.http.forms import At, Integer, Priority, Tenant, whole_number

MOST_SHOWN = 100
_STRICT = ConfigDict(extra="forbid", strict=True)
_ONE_OF: JsonDict = {"oneOf": [{"required": ["cron"]}, {"required": ["every"]}]}
_WITH_START: JsonDict = {"dependentRequired": {"count": ["start"]}}
_INSTANT: JsonDict = {"format": "date-time"}
_LABEL: JsonDict = {"minLength": 1, "maxLength": MAX_LABEL_CHARACTERS}
_LONGEST = int(FURTHEST.total_seconds())


class RuleFields(BaseModel):
    """When a schedule runs: by `cron` in a `zone`, or `every` so many seconds."""

    # What is not given has a default that nobody reads: what counts is whether it is there.
    cron: str = Field(
        default_factory=str,
        description="Five fields: minute, hour, day of month, month, day of week; or `@daily` and the like.",
        examples=["0 9 * * MON-FRI"],
    )
    every: Integer = Field(
        default_factory=int,
        json_schema_extra={"minimum": 60, "maximum": _LONGEST},
        description="Seconds from one run to the next, counted from `start`, without it from 1970.",
        examples=[900],
    )
    zone: str = Field(
        default="UTC", description="The IANA time zone in which `cron` names times.", examples=["Europe/Berlin"]
    )
    start: str = Field(
        default_factory=str,
        json_schema_extra=_INSTANT,
        description="No run is before it: an instant with a zone, in whole seconds.",
        examples=["2027-01-04T00:00:00Z"],
    )
    end: str = Field(
        default_factory=str,
        json_schema_extra=_INSTANT,
        description="All runs are before it: an instant with a zone, in whole seconds.",
        examples=["2028-01-04T00:00:00Z"],
    )
    count: Integer = Field(
        default_factory=int,
        json_schema_extra={"minimum": 1, "maximum": 1000},
        description="How many runs there are from `start` on, which must be given.",
        examples=[10],
    )


class ScheduleBody(RuleFields):
    """A schedule, whole: when it runs, by `cron` or `every`, and the job that each run is."""

    model_config = _STRICT | ConfigDict(json_schema_extra=_ONE_OF | _WITH_START)

    payload: Any = Field(
        default=None,
        description="Any JSON, 8 KiB at most when compressed: the payload of each run. Null without it.",
        examples=[{"digest": "daily"}],
    )
    tenant: Tenant = Field(default_factory=str, description="Whose jobs they are.", examples=["customer-7"])
    priority: Priority = Field(default=1, description="The priority of its jobs, 1 the most urgent.", examples=[1])
    jitter: Integer = Field(
        default=0,
        json_schema_extra={"minimum": 0},
        description="Seconds over which schedules are spread: each run of this one is later by the same part of them."
        " At most the shortest time between two runs.",
        examples=[30],
    )
    catch_up: str = Field(
        default=CatchUp.LATEST.value,
        json_schema_extra={"enum": [each.value for each in CatchUp]},
        description="Which runs are made up for that were missed while Dueline stood still: the `latest`, `none`, or"
        " `all`, the last 100 within a day.",
        examples=["latest"],
    )
    overlap: str = Field(
        default=Overlap.ALLOW.value,
        json_schema_extra={"enum": [each.value for each in Overlap]},
        description="`skip`: a run does not begin while another one of the schedule runs. The library's worker and"
        " Lambda consumer hold to it; plain consumers of SQS cannot be held to it.",
        examples=["allow"],
    )
    owner: str = Field(
        default_factory=str,
        json_schema_extra=_LABEL,
        description="Who declared it, so that what is declared no more can be found.",
        examples=["emails-service"],
    )
    description: str = Field(
        default_factory=str, json_schema_extra=_LABEL, description="What it is for.", examples=["The daily digest."]
    )


class PreviewBody(RuleFields):
    """A rule of which the next runs are asked."""

    model_config = _STRICT | ConfigDict(json_schema_extra=_ONE_OF | _WITH_START)

    since: At | None = Field(
        default=None,
        alias="from",
        description="Runs after this instant. Without it: from now on.",
        examples=["2027-01-04T00:00:00Z"],
    )
    limit: Integer = Field(default=5, ge=1, le=MOST_RUNS, description="The most runs to tell of.", examples=[5])


class RunBody(BaseModel):
    """A run, now: with the schedule's payload, or another one."""

    model_config = _STRICT

    payload: Any = Field(
        default=None,
        description="The payload of this run alone. Without it: the schedule's.",
        examples=[{"digest": "once more"}],
    )


class BackfillBody(BaseModel):
    """Runs for what has passed: one for each time that the rule names from `from` to just before `to`."""

    model_config = _STRICT

    start: At = Field(alias="from", description="From this instant on.", examples=["2026-11-01T00:00:00Z"])
    end: At = Field(
        alias="to", description="To just before this one, which has passed.", examples=["2026-11-08T00:00:00Z"]
    )


class SchedulesQuery(BaseModel):
    """Which schedules to list: by name, `limit` at most, behind the page that gave `next`."""

    model_config = _STRICT

    limit: Annotated[int, whole_number(most=MOST_HEADS)] = Field(
        default=20, ge=1, le=MOST_HEADS, description="The most schedules to tell of.", examples=[50]
    )
    after: str = Field(
        default="",
        alias="next",
        min_length=1,
        description="Go on behind an earlier page: its `next`, as it was.",
        examples=["digest"],
    )


class HistoryQuery(BaseModel):
    """Which runs to tell of: the latest first, `limit` at most, those of instants `before` one."""

    model_config = _STRICT

    limit: Annotated[int, whole_number(most=MOST_RUNS)] = Field(
        default=20, ge=1, le=MOST_RUNS, description="The most runs to tell of.", examples=[50]
    )
    before: At | None = Field(
        default=None,
        description="Runs for instants before this one, such as that of the last run told. Without it: those whose time"
        " has come. One that is to come has what is planned by now told, too.",
        examples=["2027-01-04T00:00:00Z"],
    )
