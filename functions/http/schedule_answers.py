"""The bodies of HTTP answers about schedules; docs/openapi.json is written from their types."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, NotRequired, cast

from pydantic import Field

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from dueline.model import instant
from dueline.model.job import MAX_PRIORITY, Job
from dueline.schedules.definition import CatchUp, Definition, Overlap
from dueline.schedules.head import Head
from dueline.schedules.reading import Listed, Run, RunState
from dueline.schedules.rule import Rule
from dueline.schedules.shown_runs import shown_runs
from functions.http.job_answers import Id, Instant, OutcomeAnswer, QueueName, outcome_answer

SHOWN = 5
Words = Annotated[
    str,
    Field(description="The rule in words, for people.", examples=["At 09:00 on Monday through Friday, Europe/Berlin"]),
]
ScheduleName = Annotated[str, Field(description="The schedule's name.", examples=["digest"])]
Seconds = Annotated[int, Field(ge=0)]
_GIVEN = ("cron", "every", "start", "end", "count", "tenant", "owner", "description")


class NextRun(TypedDict):
    """When a schedule runs, jitter left out."""

    nominal: Annotated[Instant, Field(description="The instant that the rule names, in UTC.")]
    local: Annotated[str, Field(description="The same in the schedule's zone.", examples=["2027-01-04T09:00:00+01:00"])]
    clock: NotRequired[
        Annotated[
            str,
            Field(
                description="What a change of the clock has to do with it, in words.",
                examples=["put forward by 1:00:00 since the run before"],
            ),
        ]
    ]


class RuleAnswer(TypedDict):
    """When a schedule runs."""

    cron: NotRequired[Annotated[str, Field(description="By the clock of its zone.", examples=["0 9 * * MON-FRI"])]]
    every: NotRequired[Annotated[Seconds, Field(description="Or every so many seconds.", examples=[900])]]
    zone: Annotated[str, Field(description="Its IANA time zone.", examples=["Europe/Berlin"])]
    start: NotRequired[Annotated[Instant, Field(description="No run is before it.")]]
    end: NotRequired[Annotated[Instant, Field(description="All runs are before it.")]]
    count: NotRequired[Annotated[int, Field(ge=1, description="How many runs there are from `start` on.")]]
    words: Words


class ScheduleAnswer(RuleAnswer):
    """A schedule as it is after a call, and its next runs: none while it is paused, or once it is deleted."""

    queue: QueueName
    schedule: ScheduleName
    generation: Annotated[int, Field(ge=1, description="It counts the changes.", examples=[1])]
    effective_from: Annotated[
        Instant,
        Field(description="Up to here what was before it served, after it serves as it is: never both, never neither."),
    ]
    paused: Annotated[bool, Field(description="It makes no runs until it is resumed.", examples=[False])]
    deleted: Annotated[bool, Field(description="It makes no more runs.", examples=[False])]
    payload: Annotated[Any, Field(description="The payload of each run.", examples=[{"digest": "daily"}])]
    tenant: NotRequired[Annotated[str, Field(description="Whose jobs they are.", examples=["customer-7"])]]
    priority: Annotated[int, Field(ge=1, le=MAX_PRIORITY, description="1 is the most urgent.", examples=[1])]
    jitter: Annotated[Seconds, Field(description="Seconds over which schedules are spread.", examples=[0])]
    catch_up: Annotated[
        str,
        Field(json_schema_extra={"enum": [each.value for each in CatchUp]}, description="What is made up for."),
    ]
    overlap: Annotated[
        str,
        Field(json_schema_extra={"enum": [each.value for each in Overlap]}, description="Whether runs may overlap."),
    ]
    owner: NotRequired[Annotated[str, Field(description="Who declared it.", examples=["emails-service"])]]
    description: NotRequired[Annotated[str, Field(description="What it is for.", examples=["The daily digest."])]]
    planned_to: Annotated[Instant, Field(description="Runs up to here are made.")]
    etag: Annotated[
        str, Field(description="What `If-Match` takes, as the header `ETag`.", examples=['"1-1799049600000"'])
    ]
    next: Annotated[list[NextRun], Field(description=f"The next {SHOWN} runs.")]


class SchedulesPage(TypedDict):
    """A page of a queue's schedules, by name. It may hold fewer than asked for, even none: `next` goes on."""

    schedules: Annotated[list[ScheduleAnswer], Field(description="The schedules of this page.")]
    next: Annotated[
        str | None, Field(description="Where the next page begins; null on the last one.", examples=["digest"])
    ]


class Preview(TypedDict):
    """The next runs of a rule, which is none of a schedule yet."""

    words: Words
    next: Annotated[list[NextRun], Field(description="The next runs, the earliest first.")]


class SubmittedRun(TypedDict):
    """A job that was made on demand."""

    id: Id
    nominal: Annotated[Instant, Field(description="The instant that it is made for, in UTC.")]


class Backfilled(TypedDict):
    """Jobs that were made on demand, in the order of their instants."""

    runs: Annotated[list[SubmittedRun], Field(description="One for each instant of the rule.")]


class RunAnswer(OutcomeAnswer):
    """A run, and how far it has come."""

    id: Id
    nominal: Annotated[Instant, Field(description="The instant that the rule names, in UTC.")]
    generation: Annotated[int, Field(ge=1, description="Of which generation it is.", examples=[1])]
    state: Annotated[
        str,
        Field(
            json_schema_extra={"enum": [each.value for each in RunState]},
            description="`planned`: in the table. `dispatched`: in its queue; then, if that tracks, `running`,"
            " `succeeded`, `failed` or `skipped`. `missed`: not caught up. `forgotten`: past its retention.",
            examples=["succeeded"],
        ),
    ]
    lateness: NotRequired[
        Annotated[float, Field(description="Seconds from due to the start of the last attempt.", examples=[0.4])]
    ]


class History(TypedDict):
    """Runs of a schedule."""

    runs: Annotated[list[RunAnswer], Field(description="The latest first.")]


def schedule_answer(head: Head, *, now: datetime) -> ScheduleAnswer:
    answer = {
        "queue": head.queue,
        "schedule": head.name,
        "generation": head.generation,
        "effective_from": instant.text(head.start),
        "paused": head.paused,
        "deleted": head.deleted,
        **_defined(head.definition),
        "planned_to": instant.text(head.planned_to),
        "etag": head.etag,
        "next": next_runs(head.definition.rule, after=max(now, head.start)) if head.is_live else [],
    }
    return cast(ScheduleAnswer, answer)


def _defined(definition: Definition) -> dict[str, Any]:
    """Return a definition with what is as by default, as far as that is something."""
    told = definition.to_dict()
    return {
        **{name: told[name] for name in _GIVEN if name in told},
        "zone": definition.rule.zone,
        "words": definition.rule.words,
        "payload": json.loads(definition.payload),
        "priority": definition.priority,
        "jitter": int(definition.jitter.total_seconds()),
        "catch_up": definition.catch_up.value,
        "overlap": definition.overlap.value,
    }


def next_runs(rule: Rule, *, after: datetime, limit: int = SHOWN) -> list[NextRun]:
    """Return the next runs of a rule, in UTC and in its zone."""
    return [cast(NextRun, run.fields) for run in islice(shown_runs(rule, after=after), limit)]


def page_of_schedules(listed: Listed, *, now: datetime) -> SchedulesPage:
    return {"schedules": [schedule_answer(head, now=now) for head in listed.heads], "next": listed.after}


def submitted_run(job: Job) -> SubmittedRun:
    return {"id": str(job.id), "nominal": instant.text(job.nominal or job.id.due)}


def backfilled(jobs: Iterable[Job]) -> Backfilled:
    return {"runs": list(map(submitted_run, jobs))}


def history_answer(runs: Sequence[Run]) -> History:
    return {"runs": list(map(_run, runs))}


def _run(run: Run) -> RunAnswer:
    answer = {
        "id": str(run.id),
        "nominal": instant.text(run.nominal),
        "generation": run.generation,
        "state": run.state.value,
        **({} if run.outcome is None else outcome_answer(run.outcome)),
        **({} if run.lateness is None else {"lateness": run.lateness}),
    }
    return cast(RunAnswer, answer)
