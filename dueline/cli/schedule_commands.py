"""The commands about schedules: `dueline schedules ...`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dueline.cli import operator_commands, options
from dueline.cli.connect import CommandRun, read_config, run_for, run_of
from dueline.cli.options import span_text
from dueline.cli.screen import DONE, end_with, json_of
from dueline.client.schedules import Schedule, SubmittedRun
from dueline.core.request import json_text
from dueline.errors import DuelineError, InvalidSchedule
from dueline.schedules.definition import CatchUp, Definition, Overlap, check_fires, check_of_queue
from dueline.schedules.rule import MOST_RUNS, Rule, shown_runs

if TYPE_CHECKING:
    from dueline.config.deployment import SchedulesFile

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
CatchUpOption = Annotated[Literal["latest", "none", "all"], typer.Option(help="Which missed runs to make up for.")]
OverlapOption = Annotated[
    Literal["allow", "skip"], typer.Option(help="Whether to skip a run while another is running.")
]
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
        return this.screen.json(*map(json_of, runs))
    rows = []
    for each in runs:
        late = None if each.lateness is None else f"{each.lateness:.1f} s"
        rows.append((each.scheduled_for, each.state, each.attempts, late, each.error, each.id))
    return this.screen.table(["for", "state", "attempts", "late by", "error", "id"], rows)


def _show_submitted(run: CommandRun, submitted: Sequence[SubmittedRun]) -> None:
    if run.screen.as_json:
        return run.screen.json(*map(json_of, submitted))
    return run.screen.table(["for", "id"], ((each.scheduled_for, each.id) for each in submitted))


def show_schedule(run: CommandRun, schedule: Schedule) -> None:
    """Show one schedule, and when it runs next."""
    if run.screen.as_json:
        return run.screen.json(schedule_fields(schedule))
    own = {"schedule": f"{schedule.queue}/{schedule.name}", "runs": rule_of(schedule), "state": state_of(schedule)}
    effect = {"generation": schedule.generation, "effective from": schedule.effective_from}
    jitter = span_text(schedule.jitter) if schedule.jitter else None
    job = {"payload": json.dumps(schedule.payload), "jitter": jitter, "words": schedule.words}
    details = {name.replace("_", " "): getattr(schedule, name) for name in _DETAILS}
    run.screen.record({**own, **effect, **job, **details})
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
    name = {"queue": fields.pop("queue"), "schedule": fields.pop("name")}
    return {**name, **fields, **spans, "payload": schedule.payload, "next": runs}


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
    catch_up: CatchUpOption = "latest",
    overlap: OverlapOption = "allow",
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


# `apply`: the schedules of a file.
_OF_RULE = ("cron", "every", "zone", "start", "end", "count")
# Shown by its name alone: a log may keep what is shown.
_PAYLOAD = "payload"
_OF_JOBS = ("tenant", "priority", "jitter", "owner", "description")


class Action(Enum):
    """How a schedule is made as the file has it, and the words for several of them."""

    CREATE = "create", "to create"
    CHANGE = "change", "to change"
    DELETE = "delete", "to delete"
    LEAVE = "leave", "no longer in the file: --prune deletes them"
    SAME = "same", "the same"

    def __init__(self, verb: str, words: str) -> None:
        self.verb, self.words = verb, words


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One schedule, as the file has it (`definition`) and as the deployment has it (`existing`); None if it is not."""

    queue: str
    name: str
    action: Action
    definition: Definition | None
    existing: Schedule | None

    @property
    def changes(self) -> dict[str, tuple[object, object]]:
        """The old and the new value of each field that changes; None is the default."""
        old = _definition(self.existing).to_dict() if self.existing else {}
        new = self.definition.to_dict() if self.definition else {}
        names = [*old, *(name for name in new if name not in old)]
        return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}

    @property
    def summary(self) -> str:
        """What changes, for people."""
        if self.definition is None:
            return "is not in the file"
        if self.existing is None:
            return self.definition.rule.words
        texts = {
            name: ["default" if value is None else str(value) for value in values]
            for name, values in self.changes.items()
        }
        return ", ".join(name if name == _PAYLOAD else f"{name}: {' → '.join(each)}" for name, each in texts.items())

    @property
    def fields(self) -> dict[str, Any]:
        """What changes, for machines."""
        changes = self.changes if self.action is Action.CHANGE else {}
        values = {name: {} if name == _PAYLOAD else {"from": old, "to": new} for name, (old, new) in changes.items()}
        fields = {"queue": self.queue, "schedule": self.name, "action": self.action.verb}
        return fields | ({"changes": values} if values else {})


def steps_of(
    queue: str, definitions: Mapping[str, Definition], existing: Sequence[Schedule], *, owner: str, prune: bool
) -> Iterator[Step]:
    """Yield a step for each schedule of the file in a queue, and for those of `owner` that it no longer has."""
    by_name = {schedule.name: schedule for schedule in existing}
    for name, definition in definitions.items():
        schedule = by_name.get(name)
        if schedule is None:
            action = Action.CREATE
        else:
            action = Action.SAME if _definition(schedule) == definition else Action.CHANGE
        yield Step(queue=queue, name=name, action=action, definition=definition, existing=schedule)
    for schedule in existing:
        if schedule.owner == owner and schedule.name not in definitions:
            action = Action.DELETE if prune else Action.LEAVE
            yield Step(queue=queue, name=schedule.name, action=action, definition=None, existing=schedule)


def _definition(schedule: Schedule) -> Definition:
    rule = Rule(**{name: getattr(schedule, name) for name in _OF_RULE})
    policies: dict[str, Any] = {"catch_up": CatchUp(schedule.catch_up), "overlap": Overlap(schedule.overlap)}
    fields = {name: getattr(schedule, name) for name in _OF_JOBS}
    return Definition(rule=rule, payload=json_text(schedule.payload), **policies, **fields)


def _put_arguments(definition: Definition) -> dict[str, Any]:
    """Return the arguments of the client's `put`."""
    rule = {name: getattr(definition.rule, name) for name in _OF_RULE}
    fields = {name: getattr(definition, name) for name in (*_OF_JOBS, "catch_up", "overlap")}
    return {**rule, **fields, "payload": json.loads(definition.payload)}


def apply(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="queues.yaml, or a file of schedules.")
    ],
    queue: Annotated[str | None, typer.Option(help="The queue of a FILE that has only `schedules:`.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete schedules that FILE had and no longer has.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without a confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change, or be refused.")] = False,
) -> None:
    """Create and change schedules as FILE has them.

    With --prune, those that it no longer has are deleted. FILE is checked first. A schedule's owner is the file that
    put it: those of other owners, and queues that are not in FILE, stay as they are. If FILE names a deployment, it is
    for that one.
    """
    content: SchedulesFile = read_config("load_schedules", file, queue=queue)
    run = run_for(ctx, content.deployment, file=file)
    must_confirm = prune and not (yes or dry_run)
    steps, codes = _steps(run, content, prune=prune)
    if steps or not codes:
        _show(run, steps, dry_run=dry_run)
    is_kept = must_confirm and not _may_delete(run, steps)
    kept = [step for step in steps if is_kept and step.action is Action.DELETE]
    chosen = [step for step in steps if step not in kept]
    codes += _refused(run, chosen) if dry_run else _carried_out(run, chosen)
    if kept:
        run.screen.line(f"not deleted: {_names(kept)}")
    end_with(codes)


def _steps(run: CommandRun, file: "SchedulesFile", *, prune: bool) -> tuple[list[Step], list[int]]:
    """Return the steps, and an exit code for each queue whose schedules could not be listed."""
    steps, codes = list[Step](), list[int]()
    with run.screen.progress("comparing") as bar:
        for number, (queue, definitions) in enumerate(file.schedules.items(), start=1):
            try:
                existing = list(run.client.schedules(queue).list())
                steps += steps_of(queue, definitions, existing, owner=file.owner, prune=prune)
            except DuelineError as error:
                error.add_note(f"no schedule of queue {queue!r} was compared or changed")
                codes.append(run.screen.error(error, queue=queue))
            bar(number, of=len(file.schedules))
    return steps, codes


def _may_delete(run: CommandRun, steps: Sequence[Step]) -> bool:
    """Return whether the deletions are confirmed. Raises typer.BadParameter where nobody can confirm."""
    gone = _names(step for step in steps if step.action is Action.DELETE)
    if not gone:
        return True
    if run.screen.as_json or not operator_commands.can_confirm():
        reason = "which only a person at a terminal can confirm"
        raise typer.BadParameter(f"--prune would delete {gone}, {reason}: add --yes")
    return typer.confirm(f"Delete {gone}?", err=True)


def _names(steps: Iterable[Step]) -> str:
    return ", ".join(f"{step.queue}/{step.name}" for step in steps)


def _show(run: CommandRun, steps: Sequence[Step], *, dry_run: bool) -> None:
    if run.screen.as_json:
        return run.screen.json(*(step.fields | {"dry_run": dry_run} for step in steps))
    shown = [step for step in steps if step.action is not Action.SAME]
    if shown:
        columns = ["action", "schedule", "what"]
        run.screen.table(columns, ((step.action.verb, f"{step.queue}/{step.name}", step.summary) for step in shown))
    counts = {action: sum(step.action is action for step in steps) for action in Action}
    totals = ", ".join(f"{count} {action.words}" for action, count in counts.items() if count)
    return run.screen.line(totals or "there are no schedules, neither in the file nor of its owner")


def _refused(run: CommandRun, steps: Sequence[Step]) -> Iterator[int]:
    """Report definitions that would be refused, as far as can be checked here; yield an exit code for each."""
    changes = [(step, step.definition) for step in steps if step.definition and step.action is not Action.SAME]
    queues = {queue.name: queue for queue in run.client.queues()} if changes else {}
    for step, definition in changes:
        try:
            check_fires(definition.rule, after=run.screen.now)
            if step.queue in queues:
                check_of_queue(definition, queues[step.queue])
        except InvalidSchedule as error:
            refusal = InvalidSchedule(f"{step.queue}/{step.name} would be refused: {error}")
            yield run.screen.error(refusal, queue=step.queue, schedule=step.name)


def _carried_out(run: CommandRun, steps: Sequence[Step]) -> Iterator[int]:
    """Carry out all steps that can be; yield an exit code for each."""
    changes = [step for step in steps if step.action in (Action.CREATE, Action.CHANGE, Action.DELETE)]
    codes = []
    with run.screen.progress("applying") as bar:
        for number, step in enumerate(changes, start=1):
            codes.append(_carry_out(run, step))
            bar(number, of=len(changes))
    if not run.screen.as_json and changes:
        run.screen.line(f"{codes.count(DONE)} of {len(changes)} done")
    yield from codes


def _carry_out(run: CommandRun, step: Step) -> int:
    schedules = run.client.schedules(step.queue)
    # Only if it is still as it was compared.
    condition: dict[str, Any] = {"if_match": step.existing.etag} if step.existing else {"only_new": True}
    try:
        if step.definition is None:
            schedules.delete(step.name, **condition)
        else:
            schedules.put(step.name, **_put_arguments(step.definition), **condition)
    except DuelineError as error:
        return run.screen.error(error, queue=step.queue, schedule=step.name)
    return DONE


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
    "preview": (preview, "dueline schedules preview '0 9 * * MON-FRI' --zone Europe/Berlin"),
}


@group.callback(invoke_without_command=True)
def start(ctx: typer.Context) -> None:
    """Create, look up and change recurring jobs."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


for _name, (_command, _example) in COMMANDS.items():
    group.command(_name, epilog=f"For example: {_example}")(_command)
