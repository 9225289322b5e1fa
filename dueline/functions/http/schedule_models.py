"""What requests and answers about schedules hold. What a rule may be, the core says.

docs/openapi.json is written from the types: the string below a field is its description there.
"""

from typing import Annotated, Any, NotRequired, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.core.job import SCHEDULE_NAME
from dueline.core.request import FURTHEST
from dueline.functions.http.answers import Instant, OutcomeAnswer, Positive, PriorityLevel
from dueline.functions.http.requests import STRICT, At, Duration, Integer, Kind, Limit, Priority, Tenant
from dueline.schedules.definition import MAX_LABEL_CHARACTERS, CatchUp, Overlap
from dueline.schedules.queries import RunState

_ONE_OF: JsonDict = {"oneOf": [{"required": ["cron"]}, {"required": ["every"]}]}
_WITH_START: JsonDict = {"dependentRequired": {"count": ["start"]}}
_INSTANT: JsonDict = {"format": "date-time"}
_LONGEST = int(FURTHEST.total_seconds())
_CATCH_UP: JsonDict = {"enum": [each.value for each in CatchUp]}
_OVERLAP: JsonDict = {"enum": [each.value for each in Overlap]}
_RUN_STATE: JsonDict = {"enum": [each.value for each in RunState]}
Seconds: TypeAlias = Annotated[int, Field(ge=0)]


class ScheduleBody(BaseModel):
    """A schedule, whole: when it runs, by `cron` in a `zone` or `every` so often, and the job that each run is."""

    model_config = STRICT | ConfigDict(json_schema_extra=_ONE_OF | _WITH_START)

    # Nobody reads the default of a field that is not given: what counts is whether it is there.
    cron: str = Field(default_factory=str)
    """Five fields: minute, hour, day of month, month, day of week; or `@daily` and the like."""
    every: Duration = Field(default_factory=int, json_schema_extra={"minimum": 60, "maximum": _LONGEST})
    """Seconds from one run to the next, or such as `15m`, `1h30m` or `1w`, counted from `start`, or 1970."""
    zone: str = "UTC"
    """The IANA time zone in which `cron` names times."""
    start: str = Field(default_factory=str, json_schema_extra=_INSTANT)
    """No run is before it: an instant with a zone, in whole seconds."""
    end: str = Field(default_factory=str, json_schema_extra=_INSTANT)
    """All runs are before it: an instant with a zone, in whole seconds."""
    count: Integer = Field(default_factory=int, json_schema_extra={"minimum": 1, "maximum": 1000})
    """How many runs there are from `start` on, which must be given."""
    payload: Any = None
    """Any JSON, 8 KiB at most when compressed: the payload of each run. Null without it."""
    kind: Kind = Field(default_factory=str)
    """Which handler of the queue runs its jobs. Without one: the handler without a kind."""
    tenant: Tenant = Field(default_factory=str)
    """Whose jobs they are."""
    priority: Priority = 1
    """The priority of its jobs, 1 the most urgent."""
    jitter: Duration = Field(default=0, json_schema_extra={"minimum": 0})
    """Seconds, or such as `5m`, over which schedules are spread: each run of this one is later by the same part of
    them. At most the shortest time between two runs."""
    catch_up: str = Field(default=CatchUp.LATEST.value, json_schema_extra=_CATCH_UP)
    """Which runs are made up for that were missed while Dueline stood still: the `latest`, `none`, or `all`, the last
    100 within a day."""
    overlap: str = Field(default=Overlap.ALLOW.value, json_schema_extra=_OVERLAP)
    """`skip`: a run does not begin while another one of the schedule runs. The library's worker and Lambda consumer
    hold to it; plain consumers of SQS cannot be held to it."""
    owner: str = Field(default_factory=str, json_schema_extra={"minLength": 1, "maxLength": MAX_LABEL_CHARACTERS})
    """Who declared it, so that what is declared no more can be found."""


class RunBody(BaseModel):
    """A run, now: with the schedule's payload, or another one."""

    model_config = STRICT

    payload: Any = None
    """The payload of this run alone. Without it: the schedule's."""


class BackfillBody(BaseModel):
    """Runs for what has passed: one for each time that the rule names from `from` to just before `to`."""

    model_config = STRICT

    start: At = Field(alias="from")
    """From this instant on."""
    end: At = Field(alias="to")
    """To just before this one, which has passed."""


class SchedulesQuery(BaseModel):
    """Which schedules to list: by name, `limit` at most, behind the page that gave `next`."""

    model_config = STRICT

    limit: Limit = 20
    """The most schedules to return."""
    after: str = Field(default="", alias="next", min_length=1, pattern=f"^{SCHEDULE_NAME}$", examples=["digest"])
    """Go on behind an earlier page: its `next`, as it was."""


class HistoryQuery(BaseModel):
    """Which runs to return: the latest first, `limit` at most, those of instants `before` one."""

    model_config = STRICT

    limit: Limit = 20
    """The most runs to return."""
    before: At | None = Field(default=None, examples=["2027-01-04T00:00:00Z"])
    """Runs for instants before this one, such as that of an earlier answer's last run. Without it: those whose time
    has come. An instant ahead includes what is planned by now."""


class NextRun(TypedDict):
    """When a schedule runs, jitter left out."""

    scheduled_for: Instant
    """The instant that the rule names, in UTC."""
    local: str
    """The same in the schedule's zone."""


class ScheduleAnswer(TypedDict):
    """A schedule as it is after a call, and its next runs: none while it is paused, or once it is deleted."""

    queue: str
    """The queue's name in queues.yaml."""
    schedule: str
    """The schedule's name."""
    cron: NotRequired[str]
    """By the clock of its zone."""
    every: NotRequired[Seconds]
    """Or every so many seconds."""
    zone: str
    """Its IANA time zone."""
    start: NotRequired[Instant]
    """No run is before it."""
    end: NotRequired[Instant]
    """All runs are before it."""
    count: NotRequired[Positive]
    """How many runs there are from `start` on."""
    generation: Positive
    """It counts the changes."""
    effective_from: Instant
    """Up to here what was before it served, after it serves as it is: never both, never neither."""
    paused: bool
    """It makes no runs until it is resumed."""
    deleted: bool
    """It makes no more runs."""
    payload: Any
    """The payload of each run."""
    kind: NotRequired[str]
    """Which handler of the queue runs its jobs."""
    tenant: NotRequired[str]
    """Whose jobs they are."""
    priority: PriorityLevel
    """1 is the most urgent."""
    jitter: Seconds
    """Seconds over which schedules are spread."""
    catch_up: Annotated[str, Field(json_schema_extra=_CATCH_UP)]
    """What is made up for."""
    overlap: Annotated[str, Field(json_schema_extra=_OVERLAP)]
    """Whether runs may overlap."""
    owner: NotRequired[str]
    """Who declared it."""
    planned_to: Instant
    """Runs up to here are made."""
    etag: str
    """What `If-Match` takes, as the header `ETag`."""
    next: list[NextRun]
    """The next 5 runs."""
    changed: NotRequired[bool]
    """Of a change: whether it changed anything. A schedule that was so already stays as it is, whatever `If-Match`
    has: a repeated change is not refused."""


class SchedulesPage(TypedDict):
    """A page of a queue's schedules, by name. It may hold fewer than `limit`, even none: `next` goes on."""

    schedules: list[ScheduleAnswer]
    """The schedules of this page."""
    next: str | None
    """Where the next page begins; null on the last one."""
    unreadable: NotRequired[Positive]
    """How many rows of this page cannot be read and are left out."""


class SubmittedRun(TypedDict):
    """A job that was made on demand."""

    id: str
    """The job's id, which says where it is."""
    scheduled_for: Instant
    """The instant that it is made for, in UTC."""


class Backfilled(TypedDict):
    """Jobs that were made on demand, in the order of their instants."""

    runs: list[SubmittedRun]
    """One for each instant of the rule."""


class RunAnswer(OutcomeAnswer):
    """A run, and how far it has come."""

    id: str
    """The job's id, which says where it is."""
    scheduled_for: Instant
    """The instant that the rule names, in UTC."""
    generation: Positive
    """Of which generation it is."""
    state: Annotated[str, Field(json_schema_extra=_RUN_STATE)]
    """`planned`: in the table. `dispatched`: in its queue; then, if that tracks, `running`, `succeeded`, `failed` or
    `skipped`. `missed`: no job was made of it, other than by a backfill. `forgotten`: past its retention."""
    lateness: NotRequired[float]
    """Seconds from due to the start of the last attempt."""


class History(TypedDict):
    """Runs of a schedule."""

    runs: list[RunAnswer]
    """The latest first."""
