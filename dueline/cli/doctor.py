"""Tell what is wrong with a deployment, the worst first, and what to do about it."""

from collections import Counter
from typing import Annotated, Any

import typer

from dueline.cli import connect
from dueline.cli.connect import run_of
from dueline.cli.screen import Bar, Screen, end_with
from dueline.doctor.examine import examine
from dueline.doctor.finding import Finding, Report, Severity, Unseen
from dueline.errors import DuelineError
from dueline.retry.calls import in_lanes

HEALTHY, FOUND, NOT_LOOKED = 0, 1, 2
_UNSEEN = "not_looked_at"


def doctor(
    ctx: typer.Context,
    sample: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Receive N messages of each dead-letter queue for their reasons; others do not see them meanwhile.",
        ),
    ] = 0,
) -> None:
    """Tell what is wrong with the deployment, the worst first, and what to do about it.

    It reads and changes nothing. Exit codes: 0 all was looked at and is well; 1 something is wrong; 2 nothing is known
    to be wrong, but not all could be looked at.
    """
    run = run_of(ctx)
    try:
        looks, seen = connect.doctor(run.target, now=run.screen.now, sample=sample)
    except DuelineError as error:
        run.screen.fault(error)
        raise typer.Exit(NOT_LOOKED) from None
    with Bar(f"looking at {run.target.name}", shown=not run.screen.as_json) as bar:
        report = examine(looks, seen=seen, spread=in_lanes, on_progress=bar)
    _show(run.screen, report, looked=len(looks))
    end_with([FOUND if report.findings else NOT_LOOKED if report.unseen else HEALTHY])


def _show(screen: Screen, report: Report, *, looked: int) -> None:
    if screen.as_json:
        for document in (*map(_finding_fields, report.findings), *map(_unseen_fields, report.unseen)):
            screen.json(document)
        return
    for finding in report.findings:
        screen.line(f"{finding.severity.value.upper():<8}  {finding.about}: {finding.what}")
        screen.line(f"{'':8}  do: {finding.do}")
        screen.line(f"{'':8}  see: {finding.page}")
    for unseen in report.unseen:
        needs = f": needs the right {unseen.needs}" if unseen.needs else ""
        screen.line(f"NOT SEEN  {unseen.what}: not looked at{needs}")
        screen.line(f"{'':8}  {unseen.reason}")
    screen.line(_summary(report, looked=looked))


def _summary(report: Report, *, looked: int) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    nothing = "nothing is known to be wrong" if report.unseen else "nothing is wrong"
    found = ", ".join(f"{counts[each]} {each.value}" for each in Severity if counts[each]) or nothing
    return f"{found}; looked at {looked - sum(bool(each.needs) for each in report.unseen)} of {looked} things"


def _finding_fields(finding: Finding) -> dict[str, Any]:
    fields = ("code", "about", "what", "do", "page")
    return {"severity": finding.severity.value, **{field: getattr(finding, field) for field in fields}}


def _unseen_fields(unseen: Unseen) -> dict[str, Any]:
    return {"severity": "unknown", "code": _UNSEEN, "about": unseen.what, "what": unseen.reason, "needs": unseen.needs}
