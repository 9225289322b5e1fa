"""Put dead letters back."""

from datetime import timedelta
from typing import Annotated

import typer

from dueline.cli import options
from dueline.cli.redriving import Plan, carry_out
from dueline.cli.run import run_of
from dueline.operate.dead_letters import Wanted

Span = Annotated[timedelta | None, typer.Option(parser=options.span, metavar="SPAN", show_default=False)]


def redrive(
    ctx: typer.Context,
    queue: Annotated[str | None, typer.Argument(metavar="QUEUE", show_default=False)] = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="What the deployment parked, in place of a queue's.")
    ] = False,
    of_queue: Annotated[str | None, typer.Option("--queue", help="With --parked: jobs of this queue.")] = None,
    past_retention: Annotated[bool, typer.Option("--past-retention", help="With --parked: also late ones.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Put them back; without it, only tell.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    older_than: Span = None,
    younger_than: Span = None,
    error: Annotated[list[str] | None, typer.Option(metavar="TYPE", help="Of this error; may be given again.")] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="With this in the reason.", show_default=False)] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="How many at most.")] = None,
    id: Annotated[list[str] | None, typer.Option(metavar="ID", help="This job; may be given again.")] = None,
) -> None:
    """Tell of dead letters, or put them back.

    Without --apply they are counted, by error and age, and left as they are. Ages are those of when SQS was last sent
    the message, which its own move to a dead-letter queue leaves as it was.
    """
    run = run_of(ctx)
    if (queue is None) is not parked:
        raise typer.BadParameter("give a QUEUE or --parked, and not both")
    if not parked and (of_queue or past_retention):
        raise typer.BadParameter("--queue and --past-retention go with --parked")
    now = run.screen.now
    wanted = Wanted(
        errors=frozenset(error or ()),
        reason=reason,
        ids=frozenset(id or ()),
        queue=of_queue,
        sent_before=options.before(now, older_than, "--older-than"),
        sent_after=options.before(now, younger_than, "--younger-than"),
    )
    carry_out(run, Plan(queue=queue, wanted=wanted, limit=limit, past_retention=past_retention), apply=apply, yes=yes)
