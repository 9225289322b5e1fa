"""Prove in the user's own account what a local AWS cannot show, and write a report."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dueline import __version__
from dueline.cli import connect
from dueline.cli.connect import Run as CommandRun
from dueline.cli.connect import run_of
from dueline.cli.faults import AGAIN, INTERRUPTED
from dueline.cli.redrive import can_ask
from dueline.cli.signals import sigterm_as_ctrl_c, undisturbed
from dueline.cli.verify_screen import Shown
from dueline.verify import use
from dueline.verify.check import Check, Result
from dueline.verify.checks import CHECKS
from dueline.verify.report import Report
from dueline.verify.run import Run, price
from dueline.verify.sandbox import NAME, Sandbox
from dueline.verify.trial import Scale

# Beside those of all commands: a check found something broken.
BROKEN = 6
_DEPLOY = "What deploys the sandbox anew, from the file whose path stands for {queues} in it: for the check partitions."


def verify(
    ctx: typer.Context,
    only: Annotated[list[str] | None, typer.Option(metavar="CHECK", help="This check; may be given again.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the checks, and run none.")] = False,
    scale: Annotated[Scale, typer.Option(help="How much is sent: full for what the bounds are about.")] = Scale.QUICK,
    report: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.", file_okay=False)] = Path("."),
    later: Annotated[bool, typer.Option("--later", help="Look what came of checks that take days.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Only mend and remove what a run left behind.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the deployment, and all that is in it.")] = False,
    deploy: Annotated[str | None, typer.Option(metavar="COMMAND", help=_DEPLOY)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Prove Dueline's promises, and what it takes for granted of AWS, in a deployment that nobody else uses.

    It is the deployment dueline-verify unless --name says otherwise: `make verify-aws` deploys it, and removes it.
    Exits with 6 if a check failed.
    """
    run, checks = run_of(ctx), chosen(only or [], later=later, listed=list_)
    _check_command(deploy)
    name = NAME if _is_default(ctx) else run.target.name
    if list_:
        return _list(run, checks, scale)
    if remove:
        return _remove(run, name, yes=yes)
    sandbox = connect.sandbox(run.target, name=name, deploy=deploy)
    with sigterm_as_ctrl_c():
        if clean:
            return _show_left(run, sandbox.tidy())
        _refuse_what_others_use(sandbox)
        planned = Run(sandbox=sandbox, checks=checks, scale=scale, name=secrets.token_hex(4), is_later=later)
        if yes or _agreed(run, planned):
            _carry_out(run, planned, report)
    return None


def chosen(names: Sequence[str], *, later: bool = False, listed: bool = False) -> list[Check]:
    """Return the checks of these names. Raises typer.BadParameter.

    Without names, those that take days are left out, unless they are to be listed; `later` there are no others.
    """
    if unknown := set(names) - {check.name for check in CHECKS}:
        known = ", ".join(check.name for check in CHECKS)
        raise typer.BadParameter(f"--only is {', '.join(sorted(unknown))}: the checks are {known}")
    fitting = [check for check in CHECKS if check.takes_days or not later]
    unnamed = [check for check in fitting if listed or check.takes_days is later]
    return [check for check in fitting if check.name in names] if names else unnamed


def _check_command(deploy: str | None) -> None:
    if deploy is not None and "{queues}" not in deploy:
        raise typer.BadParameter(f"--deploy is {deploy!r}: {{queues}} must be in it, for the path of a file")


def _is_default(ctx: typer.Context) -> bool:
    source: Any = ctx.find_root().get_parameter_source("name")
    return source is not None and source.name == "DEFAULT"


def _list(run: CommandRun, checks: Sequence[Check], scale: Scale) -> None:
    if run.screen.as_json:
        for check in checks:
            run.screen.json({"check": check.name, "promise": check.promise, "dollars": check.sends(scale).dollars})
        return None
    rows = ((check.name, check.promise, f"${check.sends(scale).dollars:.4f}") for check in checks)
    run.screen.table(["check", "what it proves", f"at most, {scale}"], rows)
    return run.screen.line(f"all of these, and the sandbox while it stands: ${price(checks, scale):.2f} at most")


def _refuse_what_others_use(sandbox: Sandbox) -> None:
    if told := use.others(sandbox.client):
        raise typer.BadParameter(
            f"the deployment {sandbox.name!r} cannot be broken: {'; '.join(told)}. Checks run in a deployment of their"
            " own (make verify-aws), of which `dueline verify --clean` removes what an earlier run left"
        )


def _remove(run: CommandRun, name: str, *, yes: bool) -> None:
    if not name.startswith(NAME):
        raise typer.BadParameter(f"--remove removes deployments whose names begin with {NAME}, and not {name!r}")
    if not yes:
        if run.screen.as_json or not can_ask():
            raise typer.BadParameter("--remove asks first, and there is nobody to ask: add --yes")
        if not typer.confirm(f"Remove the deployment {name}, its tables and its queues?", err=True):
            return
    left = connect.removal(run.target, name=name, tell=lambda what: run.screen.note(f"removing {what}"))()
    _show_left(run, [f"{each} is left" for each in left])
    if left:
        raise typer.Exit(AGAIN)


def _agreed(run: CommandRun, planned: Run) -> bool:
    if run.screen.as_json or not can_ask():
        raise typer.BadParameter("verify asks before it begins, and there is nobody to ask: add --yes")
    where = "a local AWS" if planned.sandbox.is_local else planned.sandbox.region
    about = f"{len(planned.checks)} checks in the deployment {planned.sandbox.name} in {where}, scale {planned.scale}"
    run.screen.line(f"{about}: ${planned.dollars:.2f} at most")
    return typer.confirm("Begin?", err=True)


def _carry_out(run: CommandRun, planned: Run, folder: Path) -> None:
    """Run the checks, tidy up whatever happens, and write the report."""
    sandbox, results, is_whole = planned.sandbox, list[Result](), False
    begun = sandbox.clock.now()
    try:
        with Shown(run) as watched:
            # One by one, so that Ctrl-C leaves those that have ended.
            for result in planned.results(watched):
                results.append(result)
        is_whole = True
    except KeyboardInterrupt:
        run.screen.note("interrupted: mending and removing what is left: a moment, or minutes if it is deployed again")
    finally:
        with undisturbed():
            left = sandbox.tidy()
    report = Report.of(planned, results, begun=begun, is_whole=is_whole, left=left, version=__version__)
    _end(run, report, report.write(folder))


def _end(run: CommandRun, report: Report, files: Sequence[Path]) -> None:
    _show_left(run, report.left)
    if run.screen.as_json:
        run.screen.json({"report": [str(file) for file in files], "good": report.is_good})
    else:
        run.screen.line(f"the report: {', '.join(map(str, files))}")
    if not report.is_whole:
        raise typer.Exit(INTERRUPTED)
    if not report.is_good:
        raise typer.Exit(BROKEN)


def _show_left(run: CommandRun, left: Sequence[str]) -> None:
    for each in left:
        run.screen.note(each)
