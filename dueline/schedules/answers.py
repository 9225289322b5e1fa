"""Schedules and their runs as JSON: what the HTTP API, and a deployment in memory, answer about them."""

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from dueline.core import instant
from dueline.core.job import StoredJob
from dueline.schedules.head import Head
from dueline.schedules.queries import RunRecord, ScheduleList
from dueline.schedules.rule import Rule, zone_of

NEXT_RUNS = 5


def schedule_fields(head: Head, *, now: datetime, changed: bool | None = None) -> dict[str, Any]:
    definition = head.definition
    return {
        "queue": head.queue,
        "schedule": head.name,
        "generation": head.generation,
        "effective_from": instant.text(head.start),
        "paused": head.paused,
        "deleted": head.deleted,
        **definition.json_fields(),
        "payload": json.loads(definition.payload),
        "planned_to": instant.text(head.planned_to),
        "etag": head.etag,
        "next": _next_fields(definition.rule, after=max(now, head.start)) if head.is_live else [],
        **({} if changed is None else {"changed": changed}),
    }


def _next_fields(rule: Rule, *, after: datetime) -> list[dict[str, Any]]:
    """Return the next runs of a rule, in UTC and in its zone."""
    zone = zone_of(rule.zone)
    return [
        {"scheduled_for": instant.text(at), "local": at.astimezone(zone).isoformat()}
        for at in islice(rule.after(after), NEXT_RUNS)
    ]


def page_fields(schedules: ScheduleList, *, now: datetime) -> dict[str, Any]:
    page = {"schedules": [schedule_fields(head, now=now) for head in schedules.heads], "next": schedules.after}
    return {**page, "unreadable": schedules.unreadable} if schedules.unreadable else page


def submitted_fields(job: StoredJob) -> dict[str, Any]:
    return {"id": str(job.id), "scheduled_for": instant.text(job.scheduled_for or job.id.due)}


def history_fields(runs: Sequence[RunRecord]) -> dict[str, Any]:
    return {
        "runs": [
            {
                "id": str(run.id),
                "scheduled_for": instant.text(run.scheduled_for),
                "generation": run.generation,
                "state": run.state.value,
                **({} if run.outcome is None else run.outcome.fields),
                **({} if run.lateness is None else {"lateness": run.lateness}),
            }
            for run in runs
        ]
    }
