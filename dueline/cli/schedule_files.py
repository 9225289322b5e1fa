"""`dueline schedules apply`: put the schedules of a file, and show what differs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dueline.cli import operator_commands
from dueline.cli.connect import CommandRun, read_config, run_for
from dueline.cli.screen import DONE, end_with
from dueline.client.schedules import Schedule
from dueline.core.request import json_text
from dueline.errors import DuelineError, InvalidSchedule
from dueline.schedules.definition import CatchUp, Definition, Overlap, check_fires_after, check_of_queue
from dueline.schedules.rule import Rule

if TYPE_CHECKING:
    from dueline.config.deployment import SchedulesFile
_OF_RULE = ("cron", "every", "zone", "start", "end", "count")
# Shown by its name alone: a log may keep what is shown.
_PAYLOAD = "payload"
_OF_JOBS = ("tenant", "priority", "jitter", "owner", "description")


class Action(Enum):
    """How a schedule is made as the file has it."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    LEAVE = "leave"
    SAME = "same"


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
        fields = {"queue": self.queue, "schedule": self.name, "action": self.action.value}
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


_DONE = {
    Action.CREATE: "to create",
    Action.CHANGE: "to change",
    Action.DELETE: "to delete",
    Action.LEAVE: "no longer in the file: --prune deletes them",
    Action.SAME: "the same",
}


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
        for step in steps:
            run.screen.json({**step.fields, "dry_run": dry_run})
        return
    shown = [step for step in steps if step.action is not Action.SAME]
    if shown:
        columns = ["action", "schedule", "what"]
        run.screen.table(columns, ((step.action.value, f"{step.queue}/{step.name}", step.summary) for step in shown))
    counts = {action: sum(step.action is action for step in steps) for action in Action}
    totals = ", ".join(f"{count} {_DONE[action]}" for action, count in counts.items() if count)
    run.screen.line(totals or "there are no schedules, neither in the file nor of its owner")


def _refused(run: CommandRun, steps: Sequence[Step]) -> Iterator[int]:
    """Report definitions that would be refused, as far as can be checked here; yield an exit code for each."""
    changes = [(step, step.definition) for step in steps if step.definition and step.action is not Action.SAME]
    queues = {queue.name: queue for queue in run.client.queues()} if changes else {}
    for step, definition in changes:
        try:
            check_fires_after(run.screen.now, definition.rule)
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
