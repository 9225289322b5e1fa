"""One run of the command line: what is asked of which deployment, and where its answers are shown."""

from dataclasses import dataclass
from functools import cached_property

import typer

from dueline.cli import connect
from dueline.cli.connect import Target
from dueline.cli.screen import Screen
from dueline.client.client import Client


@dataclass(frozen=True, kw_only=True)
class Run:
    """What all commands share."""

    target: Target
    screen: Screen

    @cached_property
    def client(self) -> Client:
        """The client of the deployment, found at its first use."""
        return connect.client(self.target)


def run_of(ctx: typer.Context) -> Run:
    """Return the run that a command is of."""
    run: Run = ctx.find_root().obj
    return run
