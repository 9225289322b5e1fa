"""Put dead letters back: ask before, show how far it is, and what was done."""

import random
import sys
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import typer

from dueline.cli import connect, options
from dueline.cli.connect import Run, run_of
from dueline.cli.faults import AGAIN, DONE
from dueline.cli.screen import Bar, end_with
from dueline.cli.signals import sigterm_as_ctrl_c
from dueline.clock import SystemClock
from dueline.operate.dead_letters import Rule, Wanted, to_inbound, to_its_queue
from dueline.operate.kinds import kinds_told, reasons_told
from dueline.operate.redrive import HIDDEN_SECONDS, Ends, Redrive, Redriven
from dueline.retry.calls import Calls, in_lanes
from dueline.retry.patience import Patience

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
    _carry_out(run, Plan(queue=queue, wanted=wanted, limit=limit, past_retention=past_retention), apply=apply, yes=yes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is to be put back: of a queue, or without one what the deployment parked."""

    queue: str | None
    wanted: Wanted
    limit: int | None
    past_retention: bool = False

    @property
    def what(self) -> str:
        return f"queue {self.queue}" if self.queue else "parked jobs"

    def rule(self, run: Run, ends: Ends) -> Rule:
        if self.queue:
            return partial(to_its_queue, levels=len(ends.queues))
        return partial(to_inbound, now=run.screen.now, past_retention=self.past_retention)


def _carry_out(run: Run, plan: Plan, *, apply: bool, yes: bool) -> None:
    """Look, or put back what is wanted after asking, unless `yes` says that nobody is to be asked."""
    asks = apply and not yes
    if asks and (run.screen.as_json or not can_ask()):
        raise typer.BadParameter("--apply asks first, and there is nobody to ask: add --yes")
    ends = connect.dead_letters(run.target, plan.queue)
    with sigterm_as_ctrl_c():
        if not apply or asks:
            looked = _redriven(run, plan, ends, apply=False)
            _show(run, plan, looked, applied=False)
            if not (asks and looked.wanted and typer.confirm("Put them back?", err=True)):
                return
        done = _redriven(run, plan, ends, apply=True)
    _show(run, plan, done, applied=True)
    end_with([AGAIN if done.failed else DONE])


def can_ask() -> bool:
    """Tell whether someone is there to be asked."""
    return sys.stdin.isatty()


def _redriven(run: Run, plan: Plan, ends: Ends, *, apply: bool) -> Redriven:
    calls = Calls(patience=Patience(), clock=SystemClock(), jitter=random.random)
    with Bar(f"redriving {plan.what}", shown=not run.screen.as_json) as bar:
        redrive = Redrive(
            ends,
            rule=plan.rule(run, ends),
            calls=calls,
            wanted=plan.wanted,
            limit=plan.limit,
            spread=in_lanes,
            on_progress=bar,
        )
        return redrive.apply() if apply else redrive.look()


def _show(run: Run, plan: Plan, done: Redriven, *, applied: bool) -> None:
    if run.screen.as_json:
        return run.screen.json(_document(plan, done, applied=applied))
    if done.kinds:
        rows = ((kind.error, kind.count, kind.oldest, kind.newest) for kind in done.kinds)
        run.screen.table(["error" if plan.queue else "reason", "jobs", "oldest", "newest"], rows)
    wanted = f"{done.wanted} of {done.found} dead letters of {plan.what}"
    run.screen.line(f"{wanted}: {done.moved} put back" if applied else f"{wanted}: --apply puts them back")
    for reason, count in (*done.stay.items(), *done.failed.items()):
        run.screen.line(f"{count} stay: {reason}")
    if done.hidden:
        run.screen.line(f"{done.hidden} more are with someone else, or come back within {HIDDEN_SECONDS // 60} minutes")
    return None


def _document(plan: Plan, done: Redriven, *, applied: bool) -> dict[str, Any]:
    counts = {name: getattr(done, name) for name in ("found", "wanted", "moved", "hidden")}
    return {
        "queue": plan.queue,
        "applied": applied,
        **counts,
        "by_error": kinds_told(done.kinds),
        "stay": reasons_told(done.stay),
        "failed": reasons_told(done.failed),
    }
