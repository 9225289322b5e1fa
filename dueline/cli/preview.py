"""Show when a rule runs, before there is any schedule."""

from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated

import typer

from dueline.cli import options
from dueline.cli.connect import run_of
from dueline.schedules.rule import MOST_RUNS, Rule
from dueline.schedules.shown_runs import ShownRun, shown_runs


def preview(
    ctx: typer.Context,
    cron: Annotated[
        str | None, typer.Argument(metavar="RULE", show_default=False, help="A cron expression of five fields.")
    ] = None,
    zone: Annotated[str, typer.Option(metavar="ZONE", help="The IANA time zone of RULE.")] = "UTC",
    every: Annotated[
        timedelta | None,
        typer.Option(parser=options.span, metavar="SPAN", help="In place of RULE: how often, such as 15m or 2h."),
    ] = None,
    since: Annotated[
        datetime | None, typer.Option("--from", parser=options.moment, metavar="ISO8601", help="Or now.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=MOST_RUNS, help="How many runs.")] = 10,
) -> None:
    """Show the next runs of a rule. No deployment is asked."""
    screen = run_of(ctx).screen
    rule = Rule(cron=cron, every=every, zone=zone)
    shown = islice(shown_runs(rule, after=since or screen.now), count)
    if screen.as_json:
        for run in shown:
            screen.json(run.fields)
        return
    screen.line(rule.words)
    screen.table(["in the zone", "UTC", "clock"], map(_cells, shown))


def _cells(run: ShownRun) -> tuple[str, str, str]:
    return f"{run.local:%a %Y-%m-%d %H:%M:%S %Z}", f"{run.nominal:%Y-%m-%d %H:%M:%S}", run.mark
