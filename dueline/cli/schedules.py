"""The commands about schedules: `dueline schedules ...`."""

from collections.abc import Callable
from typing import Any

import typer

from dueline.cli import apply, preview, schedule_changes, schedule_runs

group = typer.Typer(add_completion=False, rich_markup_mode=None)

COMMANDS: dict[str, tuple[Callable[..., Any], str]] = {
    "put": (schedule_changes.put, "dueline schedules put emails digest '0 9 * * MON-FRI' --zone Europe/Berlin"),
    "get": (schedule_runs.get, "dueline schedules get emails digest"),
    "list": (schedule_runs.list_, "dueline schedules list emails"),
    "pause": (schedule_changes.pause, "dueline schedules pause emails digest"),
    "resume": (schedule_changes.resume, "dueline schedules resume emails digest"),
    "delete": (schedule_changes.delete, "dueline schedules delete emails digest"),
    "run": (schedule_runs.run, """dueline schedules run emails digest --payload '{"to": "ann"}'"""),
    "backfill": (
        schedule_runs.backfill,
        "dueline schedules backfill emails digest --from 2026-11-02T00:00:00Z --to 2026-11-09T00:00:00Z",
    ),
    "history": (schedule_runs.history, "dueline schedules history emails digest --most 20"),
    "apply": (apply.apply, "dueline schedules apply queues.yaml --prune --dry-run"),
    "preview": (preview.preview, "dueline schedules preview '0 9 * * MON-FRI' --zone Europe/Berlin"),
}


@group.callback(invoke_without_command=True)
def begin(ctx: typer.Context) -> None:
    """Look after schedules, which make jobs by a rule."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


for _name, (_command, _example) in COMMANDS.items():
    group.command(_name, epilog=f"For example: {_example}")(_command)
