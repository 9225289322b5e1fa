"""The commands about schedules: `dueline schedules ...`."""

from collections.abc import Callable
from typing import Any

import typer

from dueline.cli import preview

group = typer.Typer(rich_markup_mode=None)

COMMANDS: dict[str, tuple[Callable[..., Any], str]] = {
    "preview": (preview.preview, "dueline schedules preview '0 9 * * MON-FRI' --zone Europe/Berlin"),
}


@group.callback(invoke_without_command=True)
def begin(ctx: typer.Context) -> None:
    """Look after schedules, which make jobs by a rule."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


for _name, (_command, _example) in COMMANDS.items():
    group.command(_name, epilog=f"For example: {_example}")(_command)
