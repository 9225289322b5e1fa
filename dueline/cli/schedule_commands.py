"""The commands about schedules: `dueline schedules ...`."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dueline.cli import connect, options, screen
from dueline.client.schedules import Schedule, SubmittedRun
from dueline.core.request import json_text
from dueline.errors import DuelineError
from dueline.schedules.definition import Definition
from dueline.schedules.rule import Rule

if TYPE_CHECKING:
    from dueline.config.deployment import SchedulesFile

From = Annotated[datetime, options.time_option("Times from then on, such as 1w ago.", "--from", parser=options.ago)]
To = Annotated[datetime, options.time_option("Times before then.", "--to", parser=options.ago)]
Before = Annotated[datetime | None, options.time_option("Runs before then.", parser=options.ago)]
Most = Annotated[int, typer.Option(min=1, max=100, help="How many at most.")]
Call = Annotated[
    str | None, typer.Option("--idempotency-key", help="The name of this call: repeated with it, nothing runs twice.")
]
RunPayload = Annotated[
    str | None, typer.Option(metavar="JSON", help="In place of the schedule's; - reads stdin, @name a file.")
]
_SECOND = timedelta(seconds=1)
_UTC = "%Y-%m-%d %H:%M:%S"
_LOCAL = f"%a {_UTC}"
_FIELDS = ["start", "end", "count", "kind", "tenant", "priority", "overlap", "owner", "etag"]
Name = Annotated[str, typer.Argument(metavar="SCHEDULE", show_default=False)]
Cron = Annotated[
    str | None, typer.Argument(metavar="RULE", show_default=False, help="A cron expression of five fields.")
]
Every = Annotated[timedelta | None, options.span_option("In place of RULE: how often, such as 15m, 1h30m or 1w.")]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="The IANA time zone of RULE.")]
Payload = Annotated[str, typer.Option(metavar="JSON", help="Of each run; - reads stdin, @name a file.")]
Start = Annotated[datetime | None, options.time_option("The first run is not before it.")]
End = Annotated[datetime | None, options.time_option("The last run is before it.")]
Count = Annotated[int | None, typer.Option(help="How many runs there are from --start on.")]
Jitter = Annotated[timedelta, options.span_option("Spread runs over this span after their times.")]
CatchUpOption = Annotated[Literal["latest", "none", "all"], typer.Option(help="Which missed runs to make up for.")]
OverlapOption = Annotated[
    Literal["allow", "skip"], typer.Option(help="Whether to skip a run while another is running.")
]
Owner = Annotated[str | None, typer.Option(help="Who maintains it: a file's name, a service.")]
IfMatch = Annotated[str | None, typer.Option(metavar="ETAG", help="Only if its etag is still this one.")]


def get(ctx: typer.Context, queue: options.Queue, name: Name) -> None:
    """Look a schedule up."""
    run: connect.CommandRun = ctx.obj
    show_schedule(run, run.client.schedules(queue).get(name))


def list_(ctx: typer.Context, queue: options.Queue, limit: options.Limit = None) -> None:
    """List a queue's schedules, by name."""
    run: connect.CommandRun = ctx.obj
    rows = []
    for each in islice(run.client.schedules(queue).list(), limit):
        run.screen.json(schedule_fields(each))
        run.screen.ids(each.name)
        following = each.next[0].scheduled_for if each.next else None
        rows.append((each.name, rule_of(each), state_of(each), following, each.owner))
    run.screen.table(["schedule", "runs", "state", "next", "owner"], rows, empty=f"queue {queue} has no schedule yet")


def run(
    ctx: typer.Context,
    queue: options.Queue,
    name: Name,
    payload: RunPayload = None,
    idempotency_key: Call = None,
) -> None:
    """Run a schedule now, paused or not. Its own runs are not affected."""
    this: connect.CommandRun = ctx.obj
    content: dict[str, Any] = {} if payload is None else {"payload": options.payload(payload)}
    submitted = this.client.schedules(queue).run(name, **content, idempotency_key=idempotency_key)
    _show_submitted(this, [submitted])


def backfill(
    ctx: typer.Context,
    queue: options.Queue,
    name: Name,
    start: From,
    end: To,
    idempotency_key: Call = None,
) -> None:
    """Run a schedule now for its times in a past span.

    A span may have 500 runs at most.
    """
    this: connect.CommandRun = ctx.obj
    runs = this.client.schedules(queue).backfill(name, start=start, end=end, idempotency_key=idempotency_key)
    _show_submitted(this, runs)


def history(ctx: typer.Context, queue: options.Queue, name: Name, most: Most = 10, before: Before = None) -> None:
    """List a schedule's past runs and their results, the latest first. `get` has the next ones."""
    this: connect.CommandRun = ctx.obj
    runs = this.client.schedules(queue).history(name, most, before=before)
    rows = []
    for each in runs:
        this.screen.json(screen.json_of(each))
        late = None if each.lateness is None else f"{each.lateness:.1f} s"
        rows.append((each.scheduled_for, each.state, each.attempts, late, each.error, each.id))
    none = f"schedule {queue}/{name} has had no run {'yet' if before is None else 'before then'}"
    columns = ["for", "state", "attempts", "late by", "error", "id"]
    this.screen.table(columns, rows, empty=f"{none}; those by `run` and `backfill` are not listed here")


def _show_submitted(run: connect.CommandRun, submitted: Sequence[SubmittedRun]) -> None:
    run.screen.json(*map(screen.json_of, submitted))
    run.screen.ids(*(each.id for each in submitted))
    run.screen.table(["for", "id"], ((each.scheduled_for, each.id) for each in submitted))


def show_schedule(run: connect.CommandRun, schedule: Schedule) -> None:
    run.screen.json(schedule_fields(schedule))
    own = {"schedule": f"{schedule.queue}/{schedule.name}", "runs": rule_of(schedule), "state": state_of(schedule)}
    effect = {"generation": schedule.generation, "effective from": schedule.effective_from}
    jitter = options.span_text(schedule.jitter) if schedule.jitter else None
    job = {"payload": json.dumps(schedule.payload), "jitter": jitter, "missed runs": schedule.catch_up}
    run.screen.record({**own, **effect, **job, **{name: getattr(schedule, name) for name in _FIELDS}})
    if schedule.next:
        run.screen.line("")
        rows = ((f"{each.local:{_LOCAL} %z}", f"{each.scheduled_for:{_UTC}}") for each in schedule.next)
        run.screen.table(["next, in its zone", "UTC"], rows)


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as the HTTP API's answers have it."""
    fields = screen.json_of(schedule)
    spans = {name: getattr(schedule, name) // _SECOND for name in ("every", "jitter") if name in fields}
    runs = [screen.json_of(each) | {"local": each.local.isoformat()} for each in schedule.next]
    name = {"queue": fields.pop("queue"), "schedule": fields.pop("name")}
    return {**name, **fields, **spans, "payload": schedule.payload, "next": runs}


def rule_of(rule: Schedule | Rule) -> str:
    if rule.every is None:
        return f"{rule.cron} {rule.zone}"
    return f"every {options.span_text(rule.every)}"


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
    kind: options.Kind = None,
    tenant: options.Tenant = None,
    priority: options.Priority = 1,
    jitter: Jitter = "0",  # type: ignore[assignment]  # typer parses it
    catch_up: CatchUpOption = "latest",
    overlap: OverlapOption = "allow",
    owner: Owner = None,
    if_match: IfMatch = None,
) -> None:
    """Create a schedule, or replace it as a whole.

    An equal one stays as it is. Runs up to `effective from` follow the old rule, later ones the new.
    """
    # The other parameters of this function are named as those of Schedules.put.
    fields = {**ctx.params, "payload": options.payload(payload)}
    del fields["queue"]
    run: connect.CommandRun = ctx.obj
    show_schedule(run, run.client.schedules(queue).put(**fields))


def pause(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Stop a schedule's runs until it is resumed."""
    run: connect.CommandRun = ctx.obj
    show_schedule(run, run.client.schedules(queue).pause(name, if_match=if_match))


def resume(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Resume a paused schedule, without the runs meanwhile."""
    run: connect.CommandRun = ctx.obj
    show_schedule(run, run.client.schedules(queue).resume(name, if_match=if_match))


def delete(ctx: typer.Context, queue: options.Queue, name: Name, if_match: IfMatch = None) -> None:
    """Delete a schedule; runs due by `effective from` still come."""
    run: connect.CommandRun = ctx.obj
    show_schedule(run, run.client.schedules(queue).delete(name, if_match=if_match))


# `apply`: the schedules of a file.
Action = Literal["create", "change", "delete", "leave", "same"]
# How several schedules are made as the file has them.
_ACTIONS: Mapping[Action, str] = {
    "create": "to create",
    "change": "to change",
    "delete": "to delete",
    "leave": "no longer in the file: --prune deletes them",
    "same": "the same",
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One schedule, as the file has it (`definition`) and as the deployment has it (`existing`); None if it is not.

    `prune` says whether it is deleted if the file does not have it.
    """

    queue: str
    name: str
    definition: Definition | None
    existing: Schedule | None
    prune: bool

    @property
    def action(self) -> Action:
        if self.definition is None:
            return "delete" if self.prune else "leave"
        if self.existing is None:
            return "create"
        return "change" if self.changes else "same"

    @cached_property
    def changes(self) -> list[str]:
        """The fields that change. Their values are not shown: a log may keep what is shown."""
        old = _definition(self.existing).to_dict() if self.existing else {}
        new = self.definition.to_dict() if self.definition else {}
        return [name for name in old | new if old.get(name) != new.get(name)]

    @property
    def summary(self) -> str:
        if self.definition is None:
            return "is not in the file"
        return ", ".join(self.changes) if self.existing else rule_of(self.definition.rule)

    @property
    def as_json(self) -> dict[str, Any]:
        step = {"queue": self.queue, "schedule": self.name, "action": self.action}
        return step | ({"changes": self.changes} if self.action == "change" else {})


def _definition(schedule: Schedule) -> Definition:
    def of(kind: type[Rule | Definition]) -> dict[str, Any]:
        return {each.name: getattr(schedule, each.name) for each in fields(kind) if each.name != "rule"}

    return Definition(rule=Rule(**of(Rule)), **of(Definition) | {"payload": json_text(schedule.payload)})


def apply(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="queues.yaml, or a file of schedules.")
    ],
    queue: Annotated[str | None, typer.Option(help="The queue of a FILE that has only `schedules:`.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete schedules that FILE had and no longer has.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without a confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
) -> None:
    """Create and change schedules as FILE has them.

    With --prune, those that it no longer has are deleted. FILE is checked first. A schedule's owner is the file that
    put it: those of other owners, and queues that are not in FILE, stay as they are. If FILE names a deployment, it is
    for that one.
    """
    # It imports pydantic, which few commands need.
    from dueline.config.deployment import load_schedules

    content = load_schedules(file, queue=queue)
    run = connect.run_for(ctx, content.name, file=file)
    steps, codes = _steps(run, content, prune=prune)
    if steps or not codes:
        _show(run, steps, dry_run=dry_run)
    gone = [step for step in steps if step.action == "delete"]
    names = ", ".join(f"{step.queue}/{step.name}" for step in gone)
    if gone and not (yes or dry_run):
        run.screen.check_can_confirm("--prune")
        if not typer.confirm(f"Delete {names}?", err=True):
            run.screen.line(f"not deleted: {names}")
            steps = [step for step in steps if step not in gone]
    if not dry_run:
        codes += _carried_out(run, steps)
    screen.end_with(codes)


def _steps(run: connect.CommandRun, file: "SchedulesFile", *, prune: bool) -> tuple[list[Step], list[int]]:
    """Return a step for each schedule of the file, and for those of its owner that it no longer has.

    With them, an exit code for each queue whose schedules could not be listed.
    """
    steps, codes = list[Step](), list[int]()
    for queue, definitions in file.schedules.items():
        try:
            existing = list(run.client.schedules(queue).list())
        except DuelineError as error:
            error.add_note(f"no schedule of queue {queue!r} was compared or changed")
            codes.append(run.screen.error(error, queue=queue))
            continue
        there = {each.name: each for each in existing if each.name in definitions or each.owner == file.owner}
        steps += [
            Step(queue=queue, name=name, definition=definitions.get(name), existing=there.get(name), prune=prune)
            for name in dict.fromkeys([*definitions, *there])
        ]
    return steps, codes


def _show(run: connect.CommandRun, steps: Sequence[Step], *, dry_run: bool) -> None:
    run.screen.json(*(step.as_json | {"dry_run": dry_run} for step in steps))
    shown = [step for step in steps if step.action != "same"]
    if shown:
        columns = ["action", "schedule", "what"]
        run.screen.table(columns, ((step.action, f"{step.queue}/{step.name}", step.summary) for step in shown))
    counts = Counter(step.action for step in steps)
    totals = ", ".join(f"{counts[action]:,} {words}" for action, words in _ACTIONS.items() if counts[action])
    run.screen.line(totals or "there are no schedules, neither in the file nor of its owner")


def _carried_out(run: connect.CommandRun, steps: Sequence[Step]) -> list[int]:
    """Carry out all steps that can be; return an exit code for each."""
    changes = [step for step in steps if step.action in ("create", "change", "delete")]
    codes = [_carry_out(run, step) for step in changes]
    if changes:
        run.screen.line(f"{codes.count(screen.DONE):,} of {len(changes):,} done")
    return codes


def _carry_out(run: connect.CommandRun, step: Step) -> int:
    schedules = run.client.schedules(step.queue)
    # Only if it is still as it was compared.
    etag = step.existing.etag if step.existing else None
    try:
        if step.definition is None:
            schedules.delete(step.name, if_match=etag)
        else:
            own = asdict(step.definition)
            # Its fields and its rule's are named as the parameters of Schedules.put.
            arguments = own.pop("rule") | own | {"payload": json.loads(step.definition.payload)}
            schedules.put(step.name, **arguments, if_match=etag)
    except DuelineError as error:
        return run.screen.error(error, queue=step.queue, schedule=step.name)
    return screen.DONE


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
    "apply": (apply, "dueline schedules apply queues.yaml --prune --dry-run"),
}


@group.callback(invoke_without_command=True)
def start(ctx: typer.Context) -> None:
    """Create, look up and change recurring jobs."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


for _name, (_command, _example) in COMMANDS.items():
    group.command(_name, epilog=f"For example: {_example}")(_command)
