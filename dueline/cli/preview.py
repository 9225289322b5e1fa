"""Show when a rule runs, before there is any schedule."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any

import typer

from dueline.cli import options
from dueline.cli.connect import run_of
from dueline.model import instant
from dueline.schedules.rule import MOST_RUNS, Rule
from dueline.schedules.zones import clock_change, zone_of

_NONE = timedelta(0)


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
    shown = islice(_runs(rule, since or screen.now), count)
    if screen.as_json:
        for run in shown:
            screen.json(run.fields)
        return
    screen.line(rule.words)
    screen.table(["in the zone", "UTC", "clock"], (run.cells for run in shown))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    """A run; `mark` says what a change of the clock has to do with it."""

    nominal: datetime
    local: datetime
    mark: str

    @property
    def cells(self) -> tuple[str, str, str]:
        return f"{self.local:%a %Y-%m-%d %H:%M:%S %Z}", f"{self.nominal:%Y-%m-%d %H:%M:%S}", self.mark

    @property
    def fields(self) -> dict[str, Any]:
        fields = {"nominal": instant.text(self.nominal), "local": self.local.isoformat()}
        return fields | ({"clock": self.mark} if self.mark else {})


def _runs(rule: Rule, since: datetime) -> Iterator[_Shown]:
    zone = zone_of(rule.zone)
    before = next(rule.before(since), since).astimezone(zone)
    for nominal in rule.after(since):
        local = nominal.astimezone(zone)
        yield _Shown(nominal=nominal, local=local, mark="; ".join(_marks(local, before)))
        before = local


def _marks(local: datetime, before: datetime) -> Iterator[str]:
    change = (local.utcoffset() or _NONE) - (before.utcoffset() or _NONE)
    if change:
        yield f"put {'forward' if change > _NONE else 'back'} by {abs(change)} since the run before"
    if clock_change(local.replace(tzinfo=None), zone_of(str(local.tzinfo))) < _NONE:
        yield f"shows this twice: the {'second' if local.fold else 'first'} time"
