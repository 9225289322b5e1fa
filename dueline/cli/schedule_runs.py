"""Look schedules up, list them, tell of their runs, and run them on demand."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

import typer

from dueline.cli import options
from dueline.cli.connect import Run, run_of
from dueline.cli.output import json_of
from dueline.cli.schedule_changes import Name
from dueline.cli.schedule_output import rule_of, schedule_fields, show_schedule, state_of
from dueline.cli.screen import Bar
from dueline.client.schedule_answers import Schedule, SubmittedRun

From = Annotated[datetime, typer.Option("--from", parser=options.moment, metavar="ISO8601", show_default=False)]
To = Annotated[datetime, typer.Option("--to", parser=options.moment, metavar="ISO8601", help="Just before then.")]
Before = Annotated[datetime | None, typer.Option(parser=options.moment, metavar="ISO8601", help="Of runs before then.")]
Most = Annotated[int, typer.Option(min=1, max=100, help="How many at most.")]
Limit = Annotated[int | None, typer.Option(min=1, help="How many at most.")]
Key = Annotated[str | None, typer.Option(help="Its idempotency key: asked again with it, nothing runs twice.")]
Payload = Annotated[
    str | None, typer.Option(metavar="JSON", help="In place of the schedule's; - is stdin, @name a file's content.")
]


def get(ctx: typer.Context, queue: options.Queue, name: Name) -> None:
    """Look a schedule up."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).get(name))


def list_(ctx: typer.Context, queue: options.Queue, limit: Limit = None) -> None:
    """List a queue's schedules, by name."""
    run = run_of(ctx)
    listed = islice(run.client.schedules(queue).list(), limit)
    if run.screen.as_json:
        for schedule in listed:
            run.screen.json(schedule_fields(schedule))
        return
    columns = ["schedule", "runs", "state", "next", "owner"]
    run.screen.table(columns, map(_row, list(_watched(run, listed))))


def run(ctx: typer.Context, queue: options.Queue, name: Name, payload: Payload = None, key: Key = None) -> None:
    """Run a schedule now, paused or not. Its own runs come as they would."""
    this = run_of(ctx)
    given: dict[str, Any] = {} if payload is None else {"payload": options.payload(payload)}
    _show_submitted(this, [this.client.schedules(queue).run(name, key=key, **given)])


def backfill(ctx: typer.Context, queue: options.Queue, name: Name, start: From, end: To, key: Key = None) -> None:
    """Run a schedule, now, for each time of its rule within a span that has passed; at most 500."""
    this = run_of(ctx)
    _show_submitted(this, this.client.schedules(queue).backfill(name, start=start, end=end, key=key))


def history(ctx: typer.Context, queue: options.Queue, name: Name, most: Most = 10, before: Before = None) -> None:
    """Tell what became of a schedule's runs, the latest first. Those that are to come are in `get`."""
    this = run_of(ctx)
    runs = this.client.schedules(queue).history(name, most, before=before)
    if this.screen.as_json:
        for each in runs:
            this.screen.json(json_of(each))
        return
    columns = ["for", "state", "attempts", "late by", "error", "id"]
    rows = ((each.nominal, each.state, each.attempts, _late(each.lateness), each.error, each.id) for each in runs)
    this.screen.table(columns, rows)


def _watched(run: Run, listed: Iterator[Schedule]) -> Iterator[Schedule]:
    with Bar("listing", shown=not run.screen.as_json) as bar:
        for number, schedule in enumerate(listed, start=1):
            bar(number, of=number)
            yield schedule


def _row(schedule: Schedule) -> tuple[object, ...]:
    following = schedule.next[0].nominal if schedule.next else None
    return schedule.name, rule_of(schedule), state_of(schedule), following, schedule.owner


def _show_submitted(run: Run, submitted: Sequence[SubmittedRun]) -> None:
    if run.screen.as_json:
        for each in submitted:
            run.screen.json(json_of(each))
        return
    run.screen.table(["for", "id"], ((each.nominal, each.id) for each in submitted))


def _late(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.1f} s"
