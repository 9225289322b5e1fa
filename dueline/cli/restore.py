"""Take over tables that were restored to a point in time: look first, ask, show how far it is, and what was done."""

from datetime import datetime
from typing import Annotated, Any

import typer

from dueline.cli import connect, options
from dueline.cli.connect import Run, run_of
from dueline.cli.redrive import can_ask
from dueline.cli.screen import Bar
from dueline.cli.signals import sigterm_as_ctrl_c
from dueline.config.names import Names
from dueline.operate.restore import Restored
from dueline.operate.restore_part import BEFORE, LATER, NOW, SETTLED, THERE, UNREADABLE

_COLUMNS = {
    BEFORE: "handed over before",
    SETTLED: "cancelled or sent late",
    THERE: "there already",
    NOW: "now",
    LATER: "later",
    UNREADABLE: "unreadable",
}
UNKNOWN = (
    "No backup knows what came after it:",
    "- jobs that were accepted since are lost, unless their callers schedule them again",
    "- jobs that were cancelled since are handed over, unless they are cancelled again, best before --apply",
    "- jobs that were moved since come at their old times; pauses, rates and schedules are as they were",
    "- jobs that were handed over since are handed over again: --hand-over-from leaves out those due before an instant",
)


def restore(
    ctx: typer.Context,
    jobs: Annotated[str, typer.Option(metavar="TABLE", help="The restored table of jobs.", show_default=False)],
    state: Annotated[str, typer.Option(metavar="TABLE", help="The restored table of states.", show_default=False)],
    hand_over_from: Annotated[
        datetime | None,
        typer.Option(
            parser=options.moment,
            metavar="ISO8601",
            help="Hand over jobs due from then on; by default those that had not been when the backup was made.",
            show_default=False,
        ),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Take them over; without it, only tell.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let the deployment take over tables that were restored to a point in time, or tell what that would do.

    Whatever the deployment has already stays as it is. A run that ended early is continued by the next.
    """
    run = run_of(ctx)
    _check(run, jobs, state, hand_over_from)
    asks = apply and not yes
    if asks and (run.screen.as_json or not can_ask()):
        raise typer.BadParameter("--apply asks first, and there is nobody to ask: add --yes")
    tables = {"jobs": jobs, "state": state, "hand_over_from": hand_over_from}
    with sigterm_as_ctrl_c():
        if not apply or asks:
            _show(run, _run(run, tables, "reading", apply=False), applied=False)
            if not (asks and typer.confirm("Take them over?", err=True)):
                return
        _show(run, _run(run, tables, "restoring", apply=True), applied=True)


def _check(run: Run, jobs: str, state: str, hand_over_from: datetime | None) -> None:
    names = Names(run.target.name)
    for option, table, live in (("--jobs", jobs, names.table), ("--state", state, names.state)):
        if table in (names.table, names.state):
            raise typer.BadParameter(
                f"{option} is {table!r}, which the deployment has: name what {live} was restored to"
            )
    if jobs == state:
        raise typer.BadParameter(f"--jobs and --state are both {jobs!r}: they are two tables")
    if hand_over_from and hand_over_from > run.screen.now:
        raise typer.BadParameter("--hand-over-from is in the future: what is due then was never handed over")


def _run(run: Run, tables: dict[str, Any], doing: str, *, apply: bool) -> Restored:
    with Bar(f"{doing} {tables['jobs']}", shown=not run.screen.as_json) as bar:
        restore = connect.restore(run.target, **tables, on_progress=bar)
        return restore.apply() if apply else restore.look()


def _show(run: Run, restored: Restored, *, applied: bool) -> None:
    if run.screen.as_json:
        counts = {queue: {kind: its[kind] for kind in _COLUMNS} for queue, its in restored.jobs.items()}
        return run.screen.json(
            {"applied": applied, "rows": restored.rows, "queues": counts, "left": not restored.is_over}
        )
    if restored.is_over:
        return run.screen.line("all was taken over before: nothing is left")
    if restored.jobs:
        lines = ((queue, *(its[kind] for kind in _COLUMNS)) for queue, its in restored.jobs.items())
        run.screen.table(["queue", *_COLUMNS.values()], lines)
    for line in () if applied else UNKNOWN:
        run.screen.line(line)
    return run.screen.line(f"rows: {restored.rows}; " + ("taken over" if applied else "--apply takes them over"))
