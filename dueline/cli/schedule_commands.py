"""The commands about schedules: `dueline schedules ...`."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any, Literal

import typer

from dueline.cli import options, schedule_files
from dueline.cli.connect import CommandRun, run_of
from dueline.cli.options import span_text
from dueline.cli.screen import json_of
from dueline.client.schedules import Schedule, SubmittedRun
from dueline.schedules.rule import MOST_RUNS, Rule, shown_runs

From = Annotated[datetime, options.time_option("Times from then on.", "--from")]
To = Annotated[datetime, options.time_option("Times before then.", "--to")]
Before = Annotated[datetime | None, options.time_option("Runs before then.")]
Most = Annotated[int, typer.Option(min=1, max=100, help="How many at most.")]
Key = Annotated[str | None, typer.Option(help="Its idempotency key: repeated with it, nothing runs twice.")]
RunPayload = Annotated[
    str | None, typer.Option(metavar="JSON", help="In place of the schedule's; - reads stdin, @name a file.")
]
_SECOND = timedelta(seconds=1)
_UTC = "%Y-%m-%d %H:%M:%S"
_LOCAL = f"%a {_UTC}"
_DETAILS = ("start", "end", "count", "tenant", "priority", "catch_up", "overlap", "owner", "description", "etag")
Name = Annotated[str, typer.Argument(metavar="SCHEDULE", show_default=False)]
Cron = Annotated[
    str | None, typer.Argument(metavar="RULE", show_default=False, help="A cron expression of five fields.")
]
Every = Annotated[timedelta | None, options.span_option("In place of RULE: how often, such as 15m or 2h.")]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="The IANA time zone of RULE.")]
Payload = Annotated[str, typer.Option(metavar="JSON", help="Of each run; - reads stdin, @name a file.")]
Start = Annotated[datetime | None, options.time_option("The first run is not before it.")]
End = Annotated[datetime | None, options.time_option("The last run is before it.")]
Count = Annotated[int | None, typer.Option(help="How many runs there are from --start on.")]
Jitter = Annotated[timedelta, options.span_option("Spread runs over this span after their times.")]
CatchUp = Annotated[Literal["latest", "none", "all"], typer.Option(help="Which missed runs to make up for.")]
Overlap = Annotated[Literal["allow", "skip"], typer.Option(help="Whether to skip a run while another is running.")]
Owner = Annotated[str | None, typer.Option(help="Who maintains it: a file's name, a service.")]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
IfMatch = Annotated[str | None, typer.Option(metavar="ETAG", help="Only if its etag is still this one.")]


def get(ctx: typer.Context, queue: options.Queue, name: Name) -> None:
    """Look a schedule up."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).get(name))


def list_(ctx: typer.Context, queue: options.Queue, limit: options.Limit = None) -> None:
    """List a queue's schedules, by name."""
    run = run_of(ctx)
    schedules = islice(run.client.schedules(queue).list(), limit)
    if run.screen.as_json:
        for schedule in schedules:
            run.screen.json(schedule_fields(schedule))
        return
    rows = []
    with run.screen.progress("listing") as bar:
        for number, each in enumerate(schedules, start=1):
            following = each.next[0].scheduled_for if each.next else None
            rows.append((each.name, rule_of(each), state_of(each), following, each.owner))
            bar(number, of=number)
    run.screen.table(["schedule", "runs", "state", "next", "owner"], rows)


def run(
    ctx: typer.Context,
    queue: options.Queue,
    name: Name,
    payload: RunPayload = None,
    key: Key = None,
    if_match: IfMatch = None,
) -> None:
    """Run a schedule now, paused or not. Its own runs are not affected."""
    this = run_of(ctx)
    content: dict[str, Any] = {} if payload is None else {"payload": options.payload(payload)}
    _show_submitted(this, [this.client.schedules(queue).run(name, key=key, if_match=if_match, **content)])


def backfill(
    ctx: typer.Context,
    queue: options.Queue,
    name: Name,
    start: From,
    end: To,
    key: Key = None,
    if_match: IfMatch = None,
) -> None:
    """Run a schedule now for its times in a past span.

    A span may have 500 runs at most.
    """
    this = run_of(ctx)
    runs = this.client.schedules(queue).backfill(name, start=start, end=end, key=key, if_match=if_match)
    _show_submitted(this, runs)


def history(ctx: typer.Context, queue: options.Queue, name: Name, most: Most = 10, before: Before = None) -> None:
    """List a schedule's past runs and their results, the latest first. `get` has the next ones."""
    this = run_of(ctx)
    runs = this.client.schedules(queue).history(name, most, before=before)
    if this.screen.as_json:
        for each in runs:
            this.screen.json(json_of(each))
        return
    rows = []
    for each in runs:
        late = None if each.lateness is None else f"{each.lateness:.1f} s"
        rows.append((each.scheduled_for, each.state, each.attempts, late, each.error, each.id))
    this.screen.table(["for", "state", "attempts", "late by", "error", "id"], rows)


def _show_submitted(run: CommandRun, submitted: Sequence[SubmittedRun]) -> None:
    if run.screen.as_json:
        for each in submitted:
            run.screen.json(json_of(each))
        return
    run.screen.table(["for", "id"], ((each.scheduled_for, each.id) for each in submitted))


def show_schedule(run: CommandRun, schedule: Schedule) -> None:
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
            "words": schedule.words,
            **{name.replace("_", " "): getattr(schedule, name) for name in _DETAILS},
        }
    )
    if schedule.next:
        run.screen.line("")
        rows = ((f"{each.local:{_LOCAL} %z}", f"{each.scheduled_for:{_UTC}}") for each in schedule.next)
        run.screen.table(["next, in its zone", "UTC"], rows)
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
    return "deleted" if schedule.deleted else "paused" if schedule.paused else "live"


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
    tenant: options.Tenant = None,
    priority: options.Priority = 1,
    jitter: Jitter = "0",  # type: ignore[assignment]  # typer parses it
    catch_up: CatchUp = "latest",
    overlap: Overlap = "allow",
    owner: Owner = None,
    description: Description = None,
    if_match: IfMatch = None,
) -> None:
    """Create a schedule, or replace it as a whole.

    An equal one stays as it is. Runs up to `effective from` follow the old rule, later ones the new.
    """
    # The other parameters of this function are named as those of Schedules.put.
    fields = {**ctx.params, "payload": options.payload(payload)}
    del fields["queue"]
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).put(**fields))


def pause(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Stop a schedule's runs until it is resumed."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).pause(name, if_match=if_match))


def resume(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Resume a paused schedule, without the runs meanwhile."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).resume(name, if_match=if_match))


def delete(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Delete a schedule; runs due by `effective from` still come."""
    run = run_of(ctx)
    show_schedule(run, run.client.schedules(queue).delete(name, if_match=if_match))


def preview(
    ctx: typer.Context,
    cron: Cron = None,
    zone: Zone = "UTC",
    every: Every = None,
    since: Annotated[datetime | None, options.time_option("By default, now.", "--from")] = None,
    count: Annotated[int, typer.Option(min=1, max=MOST_RUNS, help="How many runs.")] = 10,
) -> None:
    """Show the next runs of a rule, without a deployment."""
    screen = run_of(ctx).screen
    rule = Rule(cron=cron, every=every, zone=zone)
    shown = islice(shown_runs(rule, after=since or screen.now), count)
    if screen.as_json:
        for run in shown:
            screen.json(run.fields)
        return
    screen.line(rule.words)
    rows = ((f"{run.local:{_LOCAL} %Z}", f"{run.scheduled_for:{_UTC}}", run.mark) for run in shown)
    screen.table(["in the zone", "UTC", "clock"], rows)


group = typer.Typer(add_completion=False, rich_markup_mode=None)

COMMANDS: dict[str, tuple[Callable[..., Any], str]] = {
    "put": (put, "dueline schedules put emails digest '0 9 * * MON-FRI' --zone Europe/Berlin"),
    "get": (get, "dueline schedules get emails digest"),
    "list": (list_, "dueline schedules list emails"),
    "pause": (pause, "dueline schedules pause emails digest"),
    "resume": (resume, "dueline schedules resume emails digest"),
    "delete": (delete, "dueline schedules delete emails digest"),
    "run": (run, """dueline schedules run emails digest --payload '{"to": "ann"}'"""),
    "backfill": (
        backfill,
        "dueline schedules backfill emails digest --from 2026-11-02T00:00:00Z --to 2026-11-09T00:00:00Z",
    ),
    "history": (history, "dueline schedules history emails digest --most 20"),
    "apply": (schedule_files.apply, "dueline schedules apply queues.yaml --prune --dry-run"),
    "preview": (preview, "dueline schedules preview '0 9 * * MON-FRI' --zone Europe/Berlin"),
}


@group.callback(invoke_without_command=True)
def start(ctx: typer.Context) -> None:
    """Create, look up and change recurring jobs."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


for _name, (_command, _example) in COMMANDS.items():
    group.command(_name, epilog=f"For example: {_example}")(_command)
