"""The commands, as typer has them."""

from typing import Annotated, Any

import typer

from dueline import __version__
from dueline.cli import options
from dueline.cli.connect import Run, Target
from dueline.cli.faults import EXIT_CODES
from dueline.cli.group import Commands, Group
from dueline.cli.screen import Screen
from dueline.clock import SystemClock

# Where each is, and an example of it.
COMMANDS = {
    "schedule": ("schedule:schedule", """dueline schedule emails '{"to": "ann"}' --delay 2h --key welcome-ann"""),
    "get": ("jobs:get", "dueline get emails.0.t.1799049600000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"),
    "cancel": ("jobs:cancel", "dueline cancel emails.0.t.1799049600000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"),
    "reschedule": ("jobs:reschedule", "dueline reschedule emails.0.t.1799049600000.0d6a387e-… --delay 3d"),
    "run-now": ("jobs:run_now", "dueline run-now emails.0.t.1799049600000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"),
    "jobs": ("jobs:jobs", "dueline jobs emails --from 2027-01-04T00:00:00Z --limit 20"),
    "queues": ("queues:queues", "dueline queues emails"),
    "pause": ("queues:pause", "dueline pause emails"),
    "resume": ("queues:resume", "dueline resume emails"),
    "rate": ("queues:rate", "dueline rate emails 50/s"),
    "worker": ("worker:worker", "dueline worker shop.worker:worker --concurrency 20"),
    "console": ("console:console", "dueline console --read-only"),
    "doctor": ("doctor:doctor", "dueline doctor --sample 20"),
    "verify": ("verify:verify", "dueline verify --only timers --scale full --report reports"),
    "adopt": ("adopt:adopt", "dueline adopt cdk.out/dueline-queue-emails.template.json --apply"),
    "redrive": ("redrive:redrive", "dueline redrive emails --error KeyError --older-than 2h --apply"),
    "restore": (
        "restore:restore",
        "dueline restore --jobs dueline-jobs-restored --state dueline-state-restored --apply",
    ),
}
_SCHEDULES = {"schedules": ("schedules:group", "dueline schedules list emails")}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dueline {__version__}")
        raise typer.Exit


class All(Group):
    """All commands of `dueline`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given | {"commands": Commands(COMMANDS | _SCHEDULES)})


app = typer.Typer(cls=All, add_completion=False, epilog=EXIT_CODES, rich_markup_mode=None)
Name = Annotated[str, typer.Option(envvar="DUELINE_NAME", help="The deployment.")]
Url = Annotated[str | None, typer.Option(envvar="DUELINE_URL", help="The API of a local run.", show_default=False)]
Profile = Annotated[str | None, typer.Option(help="The AWS profile.", show_default=False)]
Region = Annotated[str | None, typer.Option(help="The AWS region.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="For machines: JSON, a line each. It may stand anywhere.")]
Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Tell the version.")]


@app.callback()
def begin(
    ctx: typer.Context,
    name: Name = "dueline",
    url: Url = None,
    profile: Profile = None,
    region: Region = None,
    as_json: Json = False,
    version: Version = False,
) -> None:
    """Schedule jobs, take them back, and look after queues and workers.

    The deployment and the credentials are given before the command.
    """
    target = Target(name=name, url=options.url(url), profile=profile, region=region)
    ctx.obj = Run(target=target, screen=Screen(as_json=as_json, now=SystemClock().now()))


def run() -> int:
    """Run what was typed; return its exit code."""
    code: int = typer.main.get_command(app).main(standalone_mode=False)
    return code
