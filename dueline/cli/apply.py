"""Make the schedules of queues what a file says, and tell the difference."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dueline.cli.connect import Run, run_of
from dueline.cli.difference import Action, Step, steps_of
from dueline.cli.faults import DONE
from dueline.cli.screen import Bar, end_with
from dueline.errors import DuelineError, InvalidSchedule
from dueline.schedules.definition import check_of_queue
from dueline.schedules.ending import check_fires_after

if TYPE_CHECKING:
    from dueline.schedules.definition import Definition

_DONE = {
    Action.CREATE: "to create",
    Action.CHANGE: "to change",
    Action.DELETE: "to delete",
    Action.LEAVE: "not in the file: --prune deletes them",
    Action.SAME: "the same",
}


def apply(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="YAML: queues.yaml, or schedules.")],
    queue: Annotated[str | None, typer.Option(help="Whose schedules they are, if FILE has `schedules:` alone.")] = None,
    owner: Annotated[str, typer.Option(help="Who declares them.")] = "file",
    prune: Annotated[bool, typer.Option("--prune", help="Delete those of this owner that FILE does not name.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would change, or be refused.")] = False,
) -> None:
    """Make schedules what a file says: create, change and, with --prune, delete them.

    All of FILE is checked before anything is asked. Schedules of other owners, and queues that FILE does not name, are
    left alone.
    """
    run, declared = run_of(ctx), _declared(file, queue, owner)
    with Bar("looking", shown=not run.screen.as_json) as bar:
        steps: list[Step] = []
        for number, (name, wanted) in enumerate(declared.items(), start=1):
            found = list(run.client.schedules(name).list())
            steps += steps_of(name, wanted, found, owner=owner, prune=prune)
            bar(number, of=len(declared))
    _show(run, steps, dry_run=dry_run)
    end_with(_refused(run, steps) if dry_run else _carried_out(run, steps))


def _declared(file: Path, queue: str | None, owner: str) -> Mapping[str, Mapping[str, "Definition"]]:
    """Return the definitions that a file has, by queue and name."""
    # Both take a while to import, and no other command needs them.
    from dataclasses import replace

    from dueline.config.schedules_file import load_schedules
    from dueline.config.yaml_file import ConfigurationError

    try:
        declared = load_schedules(file, queue=queue)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from None
    return {
        name: {each: replace(definition, owner=owner) for each, definition in of_queue.items()}
        for name, of_queue in declared.items()
    }


def _show(run: Run, steps: Sequence[Step], *, dry_run: bool) -> None:
    if run.screen.as_json:
        for step in steps:
            run.screen.json({**step.fields, "dry_run": dry_run})
        return
    shown = [step for step in steps if step.action is not Action.SAME]
    if shown:
        columns = ["action", "schedule", "what"]
        run.screen.table(columns, ((step.action.value, f"{step.queue}/{step.name}", step.told) for step in shown))
    counts = {action: sum(step.action is action for step in steps) for action in Action}
    told = ", ".join(f"{count} {_DONE[action]}" for action, count in counts.items() if count)
    run.screen.line(told or "there are no schedules, neither in the file nor of its owner")


def _refused(run: Run, steps: Sequence[Step]) -> Iterator[int]:
    """Tell which definitions would be refused, as far as that is known before; yield an exit code for each."""
    wanted = [(step, step.wanted) for step in steps if step.wanted and step.action is not Action.SAME]
    queues = {queue.name: queue for queue in run.client.queues()} if wanted else {}
    for step, definition in wanted:
        try:
            check_fires_after(run.screen.now, definition.rule)
            if step.queue in queues:
                check_of_queue(definition, queues[step.queue])
        except InvalidSchedule as error:
            refusal = InvalidSchedule(f"{step.queue}/{step.name} would be refused: {error}")
            yield run.screen.fault(refusal, queue=step.queue, schedule=step.name)


def _carried_out(run: Run, steps: Sequence[Step]) -> Iterator[int]:
    """Carry out what is to be done, all that can be; yield an exit code for each."""
    wanted = [step for step in steps if step.action in (Action.CREATE, Action.CHANGE, Action.DELETE)]
    codes = []
    with Bar("applying", shown=not run.screen.as_json) as bar:
        for number, step in enumerate(wanted, start=1):
            codes.append(_carry_out(run, step))
            bar(number, of=len(wanted))
    if not run.screen.as_json and wanted:
        run.screen.line(f"{codes.count(DONE)} of {len(wanted)} done")
    yield from codes


def _carry_out(run: Run, step: Step) -> int:
    schedules = run.client.schedules(step.queue)
    # As it was looked at, or not there.
    condition: dict[str, Any] = {"if_match": step.found.etag} if step.found else {"only_new": True}
    try:
        if step.wanted is None:
            schedules.delete(step.name, **condition)
        else:
            schedules.put(step.name, **step.given, **condition)
    except DuelineError as error:
        return run.screen.fault(error, queue=step.queue, schedule=step.name)
    return DONE
