"""Examples of schedules for readers, made by the code that makes the real answers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from dueline.lookup.outcome import Outcome
from dueline.model import instant
from dueline.model.job import JobId, State
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head
from dueline.schedules.reading import Listed, Run, RunState
from functions.http import schedule_answers
from functions.http.openapi.examples import ID

BODY = {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "payload": {"digest": "daily"}}
EVERY = {"every": 900, "overlap": "skip", "owner": "emails-service"}
_JOB = JobId.parse(ID)
_NOW = instant.parse("2027-01-01T12:00:00Z")
_HEAD = Head(
    queue="emails",
    name="digest",
    definition=Definition.from_dict({**BODY, "payload": '{"digest":"daily"}'}),
    generation=1,
    start=_NOW,
    paused=False,
    deleted=False,
    partition=_JOB.partition,
    planned_to=_JOB.due,
    retention=timedelta(days=7),
)


def schedule(*, paused: bool = False, deleted: bool = False) -> Any:
    generation = 2 if paused or deleted else 1
    head = replace(_HEAD, paused=paused, deleted=deleted, generation=generation)
    return schedule_answers.schedule_answer(head, now=_NOW)


def page() -> Any:
    return schedule_answers.page_of_schedules(Listed(heads=(_HEAD,), after="digest"), now=_NOW)


def preview() -> Any:
    rule = _HEAD.definition.rule
    return {"words": rule.words, "next": schedule_answers.next_runs(rule, after=_NOW)}


def run() -> Any:
    return {"id": ID, "nominal": instant.text(_JOB.due)}


def history() -> Any:
    began = _JOB.due + timedelta(seconds=0.417)
    done = Outcome(state=State.SUCCEEDED, attempts=1, started=began, ended=began + timedelta(seconds=1))
    succeeded = Run(id=_JOB, nominal=_JOB.due, generation=1, state=RunState.SUCCEEDED, outcome=done, lateness=0.417)
    return schedule_answers.history_answer([succeeded])
