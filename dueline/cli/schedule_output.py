"""Schedules and their runs, as people and machines are shown them."""

import json
from datetime import timedelta
from typing import Any

from dueline.cli.connect import Run
from dueline.cli.options import span_text
from dueline.cli.output import json_of
from dueline.client.schedule_answers import NextRun, Schedule

_SECOND = timedelta(seconds=1)
_TOLD = ("words", "start", "end", "count", "tenant", "priority", "catch_up", "overlap", "owner", "description", "etag")


def show_schedule(run: Run, schedule: Schedule) -> None:
    """Show one schedule, and when it runs next."""
    if run.screen.as_json:
        return run.screen.json(schedule_fields(schedule))
    run.screen.record(
        {
            "schedule": f"{schedule.queue}/{schedule.name}",
            "runs": rule_of(schedule),
            "state": state_of(schedule),
            "generation": schedule.generation,
            "effective from": schedule.effective_from,
            "payload": json.dumps(schedule.payload),
            "jitter": span_text(schedule.jitter) if schedule.jitter else None,
            **{name.replace("_", " "): getattr(schedule, name) for name in _TOLD},
        }
    )
    if schedule.next:
        run.screen.line("")
        run.screen.table(["next, in its zone", "UTC"], map(_cells, schedule.next))
    return None


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as the HTTP API's answers have it."""
    fields = json_of(schedule)
    spans = {name: getattr(schedule, name) // _SECOND for name in ("every", "jitter") if name in fields}
    runs = [json_of(each) | {"local": each.local.isoformat()} for each in schedule.next]
    return {
        "queue": fields.pop("queue"),
        "schedule": fields.pop("name"),
        **fields,
        **spans,
        "payload": schedule.payload,
        "next": runs,
    }


def rule_of(schedule: Schedule) -> str:
    """Return when a schedule runs, in a few words."""
    return f"every {span_text(schedule.every)}" if schedule.every is not None else f"{schedule.cron} {schedule.zone}"


def state_of(schedule: Schedule) -> str:
    """Return whether a schedule makes runs."""
    if schedule.deleted:
        return "deleted"
    return "paused" if schedule.paused else "live"


def _cells(run: NextRun) -> tuple[str, str]:
    return f"{run.local:%a %Y-%m-%d %H:%M:%S %z}", f"{run.nominal:%Y-%m-%d %H:%M:%S}"
