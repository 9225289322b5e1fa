"""Create schedules, change, pause, resume and delete them."""

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from dueline.cli import options
from dueline.cli.connect import run_of
from dueline.cli.schedule_output import show_schedule

Name = Annotated[str, typer.Argument(metavar="SCHEDULE", show_default=False)]
Cron = Annotated[
    str | None, typer.Argument(metavar="RULE", show_default=False, help="A cron expression of five fields.")
]
Every = Annotated[
    timedelta | None,
    typer.Option(parser=options.span, metavar="SPAN", help="In place of RULE: how often, such as 15m or 2h."),
]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="The IANA time zone of RULE.")]
Payload = Annotated[str, typer.Option(metavar="JSON", help="Of each run; - is stdin, @name a file's content.")]
Start = Annotated[datetime | None, typer.Option(parser=options.moment, metavar="ISO8601", help="No run is before it.")]
End = Annotated[datetime | None, typer.Option(parser=options.moment, metavar="ISO8601", help="All runs are before it.")]
Count = Annotated[int | None, typer.Option(help="How many runs there are from --start on.")]
Tenant = Annotated[str | None, typer.Option(help="Whose jobs they are.")]
Priority = Annotated[int, typer.Option(help="1 is the most urgent.")]
Jitter = Annotated[
    timedelta, typer.Option(parser=options.span, metavar="SPAN", help="Over which runs of schedules are spread.")
]
CatchUp = Annotated[str, typer.Option(help="Which missed runs are made up for: latest, none or all.")]
Overlap = Annotated[str, typer.Option(help="allow; or skip a run that begins while another one is under way.")]
Owner = Annotated[str | None, typer.Option(help="Who declares it.")]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
IfMatch = Annotated[
    str | None, typer.Option(metavar="ETAG", help="Only if it is still as it was when that etag was told.")
]


def put(
    ctx: typer.Context,
    queue: options.Queue,
    name: Name,
    cron: Cron = None,
    every: Every = None,
    zone: Zone = "UTC",
    payload: Payload = "null",
    start: Start = None,
    end: End = None,
    count: Count = None,
    tenant: Tenant = None,
    priority: Priority = 1,
    jitter: Jitter = "0",  # type: ignore[assignment]  # typer parses it
    catch_up: CatchUp = "latest",
    overlap: Overlap = "allow",
    owner: Owner = None,
    description: Description = None,
    if_match: IfMatch = None,
) -> None:
    """Create a schedule, or change it to this as a whole.

    One that is so already stays as it is. Up to `effective from` what was before serves, after it what is now.
    """
    run = run_of(ctx)
    given: dict[str, Any] = {"cron": cron, "every": every, "zone": zone, "start": start, "end": end, "count": count}
    given |= {"tenant": tenant, "priority": priority, "jitter": jitter, "catch_up": catch_up, "overlap": overlap}
    given |= {"owner": owner, "description": description, "if_match": if_match}
    show_schedule(run, run.client.schedules(queue).put(name, **given, payload=options.payload(payload)))


def pause(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Let a schedule make no more runs, until it is resumed."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).pause(name, if_match=if_match))


def resume(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Let a paused schedule make runs again; nothing is caught up."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).resume(name, if_match=if_match))


def delete(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Delete a schedule; runs that are due by `effective from` still come."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).delete(name, if_match=if_match))
