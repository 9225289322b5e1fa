"""What people on call run: dead letters, restored tables, and what is wrong with a deployment."""

import json
from collections import ChainMap, Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dueline.cli import connect, options
from dueline.cli.screen import AGAIN, DONE, Screen, end_with, plural
from dueline.client.models import payload_fields
from dueline.config.names import Names
from dueline.core import retry
from dueline.core.message import Message
from dueline.core.ports import QueueMessage
from dueline.errors import DuelineError, InvalidJob
from dueline.operations import dead_letters, observation
from dueline.operations.backlog import named
from dueline.operations.doctor import findings
from dueline.operations.redrive import HIDDEN_SECONDS, Redrive, RedriveQueues, RedriveResult
from dueline.operations.restore import BEFORE, LATER, NOW, SETTLED, THERE, UNREADABLE, RestoreResult

# Exit codes of doctor and preflight.
HEALTHY, PROBLEM, NOT_CHECKED = 0, 1, 6
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without it, only show what it would do.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


def _is_confirmed(
    screen: Screen, preview: Callable[[], bool], question: str, *, apply: bool, yes: bool, option: str = "--apply"
) -> bool:
    """Show a preview, unless --yes is given with what an option does, and return whether to go on.

    `preview` returns whether there is anything to do. Raises typer.BadParameter where nobody can confirm.
    """
    if apply and yes:
        return True
    if apply:
        screen.check_can_confirm(option)
    return preview() and apply and typer.confirm(question, err=True)


# Dead letters.
OlderThan = Annotated[datetime | None, options.time_option("Sent longer ago, such as 2h.", parser=options.ago)]
YoungerThan = Annotated[datetime | None, options.time_option("Sent since so long ago.", parser=options.ago)]
OfError = Annotated[list[str] | None, typer.Option("--error", metavar="TYPE", help="Of this error; can be repeated.")]
OfKind = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help='Of this kind, "" for none; can be repeated.')
]
OfReason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="With this in the reason.", show_default=False)]
OfId = Annotated[list[str] | None, typer.Option(metavar="ID", help="This job; can be repeated.")]


def _filter(ctx: typer.Context, *, queue: str | None = None) -> dead_letters.DeadLetterFilter:
    """Return what selects dead letters as a command's options say."""
    chosen = ctx.params
    return dead_letters.DeadLetterFilter(
        errors=frozenset(chosen["error"] or ()),
        kinds=frozenset(chosen["kind"] or ()),
        reason=chosen["reason"],
        ids=frozenset(chosen["id"] or ()),
        queue=queue,
        sent_before=chosen["older_than"],
        sent_after=chosen["younger_than"],
    )


def _carry_out(
    run: connect.CommandRun,
    ends: RedriveQueues,
    act: Callable[[Redrive], RedriveResult],
    show: Callable[[RedriveResult], object],
    *,
    label: str,
    errors: Sequence[str] | None,
    **options: Any,
) -> RedriveResult:
    """Do a run over dead letters and show its result: of one that changes something and fails, what it did.

    Where none was selected, of these `errors` or others, it shows which errors they have.
    """
    with run.screen.progress(label) as bar:
        calls = connect.retrying(retry.Patience())
        redrive = Redrive(ends, calls=calls, spread=retry.in_lanes, on_progress=bar, **options)
        try:
            result = act(redrive)
        except (Exception, KeyboardInterrupt):
            if act is not Redrive.look and redrive.result.there:
                show(redrive.result)
                _show_rest(run.screen, redrive.result, "were not received before it failed")
            raise
    show(result)
    _show_rest(run.screen, result, f"did not arrive: try again in {HIDDEN_SECONDS // 60} minutes")
    counts = Counter[str]()
    for each in result.others:
        counts[each.error] += each.count
    if counts and not result.selected:
        has_none = errors and not counts.keys() & set(errors)
        none = f"none has the error {' or '.join(errors or ())}" if has_none else "none matches the options"
        others = named([f"{count:,} of {error}" for error, count in counts.most_common()])
        run.screen.line(f"{none}; there are {others}")
    return result


def dead(
    ctx: typer.Context,
    queue: options.Queue,
    payload: Annotated[bool, typer.Option("--payload", help="Show their payloads too.")] = False,
    retry_: Annotated[bool, typer.Option("--retry", help="Put them back into the queue.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete them for good.")] = False,
    yes: Yes = False,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    error: OfError = None,
    kind: OfKind = None,
    reason: OfReason = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    id: OfId = None,
) -> None:
    """List a queue's dead letters, retry or delete them.

    What was shown is what is retried or deleted, after a confirmation. Reading hides them from others meanwhile.
    """
    run, messages = connect.run_of(ctx), list[QueueMessage]()
    if retry_ and delete:
        raise typer.BadParameter("--retry and --delete are both given: give one of them")
    selected, ends = _filter(ctx), connect.dead_letters(run.target, queue)
    # Of what is only listed or deleted, nothing has to fit the queue.
    rule: dict[str, Any] = {"rule": partial(dead_letters.to_its_queue, levels=len(ends.queues))} if retry_ else {}
    act, done, question, option = Redrive.delete, "deleted", "Delete them for good?", "--delete"
    if retry_:
        act, done, question, option = Redrive.apply, "put back", "Put them back?", "--retry"
    carry_out = partial(_carry_out, run, ends, label=f"reading the dead letters of {queue}", errors=error)

    def look() -> bool:
        show = partial(_show_dead, run.screen, queue, messages, payload=payload)
        carry_out(Redrive.look, show, selection=selected, limit=limit, on_selected=messages.append, **rule)
        return bool(messages)

    if not (retry_ or delete):
        look()
    elif _is_confirmed(run.screen, look, question, apply=True, yes=yes, option=option):
        shown = replace(selected, messages=frozenset(each.message_id for each in messages))
        show = partial(_show_run, run.screen, queue, done=done)
        result = carry_out(act, show, selection=shown, limit=limit, **rule)
        end_with([AGAIN if result.failed else DONE])


def _show_dead(
    screen: Screen, queue: str, messages: Sequence[QueueMessage], result: RedriveResult, *, payload: bool
) -> None:
    rows = []
    for message in sorted(messages, key=lambda each: each.sent):
        error, kind = dead_letters.group_of(message.message)
        fields = dead_letters.dead_letter_json(message)
        content = _payload_of(message.message) if payload else {}
        screen.json({"queue": queue, **fields, "error": error, "kind": kind or None, **content})
        screen.ids(fields["id"])
        row = {"id": fields["id"], "sent": message.sent, "error": error, "kind": kind or None}
        row |= {name: fields[name] for name in ("attempts", "reason", "key", "tenant")}
        rows.append(row)
        if payload:
            screen.record(row | {name.replace("_", " "): _text_of(value) for name, value in content.items()})
            screen.line("")
    if rows and not payload:
        screen.table([*rows[0]], ([*row.values()] for row in rows), optional=rows[0])
    screen.line(f"{len(rows):,} of {plural(result.there, 'dead letter')} of queue {queue}")


def _payload_of(message: Message) -> dict[str, Any]:
    try:
        return payload_fields(message.job())
    except InvalidJob:
        return {"payload_text": message.body}


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _show_rest(screen: Screen, result: RedriveResult, why: str) -> None:
    """Show how many messages a run did not get, those in flight apart."""
    if result.hidden:
        more = f"{result.hidden:,} more {'is' if result.hidden == 1 else 'are'} in flight"
        screen.line(f"{more}, and visible again within {HIDDEN_SECONDS // 60} minutes")
    if result.not_received:
        more = f"about {result.not_received:,} more {'was' if result.not_received == 1 else 'were'} there"
        screen.line(f"{more} and {why}")


def redrive(
    ctx: typer.Context,
    queue: options.AnyQueue = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="The deployment's parked jobs, in place of a queue's.")
    ] = False,
    of_queue: Annotated[str | None, typer.Option("--queue", help="With --parked: jobs of this queue.")] = None,
    past_retention: Annotated[
        bool, typer.Option("--past-retention", help="With --parked: also jobs past their retention.")
    ] = False,
    apply: Apply = False,
    yes: Yes = False,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    error: OfError = None,
    kind: OfKind = None,
    reason: OfReason = "",
    limit: options.Limit = None,
    id: OfId = None,
    stacks: Annotated[bool, typer.Option("--stacks", help="Also show a stack trace of each error.")] = False,
) -> None:
    """Show a queue's dead letters, or put them back into the queue.

    Without --apply they are counted, by error, kind and age, and left as they are. Ages count from when the message was
    last sent to SQS, which its own move to a dead-letter queue leaves as it was.
    """
    run = connect.run_of(ctx)
    if (queue is None) is not parked:
        raise typer.BadParameter("give a QUEUE or --parked, and not both")
    if not parked and (of_queue or past_retention):
        raise typer.BadParameter("--queue and --past-retention go with --parked")
    selected, ends = _filter(ctx, queue=of_queue), connect.dead_letters(run.target, queue)
    if queue:
        rule = partial(dead_letters.to_its_queue, levels=len(ends.queues))
    else:
        rule = partial(dead_letters.to_inbound, now=run.screen.now, past_retention=past_retention)

    def run_once(*, apply: bool) -> RedriveResult:
        show = partial(_show_run, run.screen, queue, done="put back" if apply else "", stacks=stacks)
        act, label = Redrive.apply if apply else Redrive.look, f"redriving {queue or 'parked jobs'}"
        of_run = {"rule": rule, "selection": selected, "limit": limit}
        return _carry_out(run, ends, act, show, label=label, errors=error, **of_run)

    if _is_confirmed(run.screen, lambda: run_once(apply=False).selected > 0, "Put them back?", apply=apply, yes=yes):
        end_with([AGAIN if run_once(apply=True).failed else DONE])


def _show_run(screen: Screen, queue: str | None, result: RedriveResult, *, done: str, stacks: bool = False) -> None:
    """Show what a run selected, and how many of these were `done`: put back, or deleted; empty if it only looked."""
    counts = {"found": result.received, "wanted": result.selected}
    counts["deleted" if done == "deleted" else "moved"] = result.moved
    counts |= {"hidden": result.hidden, "not_received": result.not_received}
    by_error = {"by_error": dead_letters.error_groups_json(result.kinds, with_stacks=stacks)}
    reasons = {"stay": dead_letters.reasons_json(result.stay), "failed": dead_letters.reasons_json(result.failed)}
    screen.json({"queue": queue, "applied": bool(done), **counts, **by_error, **reasons})
    columns = ("error" if queue else "reason", "kind", "jobs", "oldest", "newest")
    if result.kinds:
        rows = ((each.error, each.kind, each.count, each.oldest, each.newest) for each in result.kinds)
        screen.table(columns, rows, optional=["kind"])
    for each in result.kinds if stacks else ():
        lines = each.stack.splitlines()
        of_kind = f" of {each.kind}" if each.kind else ""
        for line in ("", f"{each.error}{of_kind}:{'' if lines else ' no stack trace'}", *(f"    {it}" for it in lines)):
            screen.line(line)
    source = f"queue {queue}" if queue else "parked jobs"
    did = f": {result.moved:,} {done}" if done else ": --apply puts them back"
    received = plural(result.received, "dead letter")
    screen.line(f"{result.selected:,} of {received} of {source}{did if result.selected else ''}")
    for reason, count in (*result.stay.items(), *result.failed.items()):
        screen.line(f"{count:,} stay{'s' if count == 1 else ''}: {reason}")


# Tables that were restored to a point in time.
_COLUMNS = {
    BEFORE: "handed over before",
    SETTLED: "cancelled or sent late",
    THERE: "there already",
    NOW: "now",
    LATER: "later",
    UNREADABLE: "unreadable",
}
UNKNOWN = (
    "No backup has what came after it:",
    "- jobs that were accepted since are lost, unless their callers schedule them again",
    "- jobs that were cancelled since are handed over, unless they are cancelled again, best before --apply",
    "- jobs that were moved since come at their old times; pauses, rates and schedules are as they were",
    "- jobs that were handed over since are handed over again: --hand-over-from leaves out those due before an instant",
)


def restore(
    ctx: typer.Context,
    jobs: Annotated[str, typer.Option(metavar="TABLE", help="The restored table of jobs.", show_default=False)],
    state: Annotated[str, typer.Option(metavar="TABLE", help="The restored table of states.", show_default=False)],
    hand_over_from: Annotated[
        datetime | None,
        options.time_option(
            "Hand over jobs due from then on; by default those that had not been when the backup was made.",
            parser=options.ago,
        ),
    ] = None,
    apply: Apply = False,
    yes: Yes = False,
) -> None:
    """Copy restored tables into the deployment, or preview it.

    They are tables that AWS restored to a point in time. Rows that the deployment has stay as they are. The next run
    continues one that ended early.
    """
    run = connect.run_of(ctx)
    _check_tables(run, jobs, state, hand_over_from)

    def run_once(*, apply: bool) -> RestoreResult:
        with run.screen.progress(f"{'restoring' if apply else 'reading'} {jobs}") as bar:
            restore = connect.restore(
                run.target, jobs=jobs, state=state, hand_over_from=hand_over_from, on_progress=bar
            )
            result = restore.apply() if apply else restore.look()
        _show_restored(run.screen, result, applied=apply)
        return result

    if _is_confirmed(run.screen, lambda: not run_once(apply=False).is_over, "Take them over?", apply=apply, yes=yes):
        run_once(apply=True)


def _check_tables(run: connect.CommandRun, jobs: str, state: str, hand_over_from: datetime | None) -> None:
    names = Names(run.target.name)
    for option, table, live in (("--jobs", jobs, names.table), ("--state", state, names.state)):
        if table in (names.table, names.state):
            raise typer.BadParameter(
                f"{option} is {table!r}, which the deployment has: name what {live} was restored to"
            )
    if jobs == state:
        raise typer.BadParameter(f"--jobs and --state are both {jobs!r}: they are two tables")
    if hand_over_from and hand_over_from > run.screen.now:
        raise typer.BadParameter("--hand-over-from is in the future: what is due then was never handed over")


def _show_restored(screen: Screen, result: RestoreResult, *, applied: bool) -> None:
    counts = {queue: {kind: its[kind] for kind in _COLUMNS} for queue, its in sorted(result.jobs.items())}
    screen.json({"applied": applied, "rows": result.rows, "queues": counts, "left": not result.is_over})
    if result.is_over:
        return screen.line("all was taken over before: nothing is left")
    if counts:
        screen.table(["queue", *_COLUMNS.values()], ((queue, *its.values()) for queue, its in counts.items()))
    for line in () if applied else UNKNOWN:
        screen.line(line)
    return screen.line(f"rows: {result.rows:,}; " + ("taken over" if applied else "--apply takes them over"))


# What is wrong with a deployment, and what prevents the next.
def doctor(
    ctx: typer.Context,
    sample: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Receive N messages of each dead-letter queue for their reasons; this hides them for a moment.",
        ),
    ] = 0,
) -> None:
    """Report what is wrong with the deployment, and what to do.

    The worst comes first. It changes nothing. Exit codes: 0 everything was checked and is well; 1 something is wrong; 6
    nothing is known to be wrong, but not everything could be checked.
    """
    run = connect.run_of(ctx)
    try:
        checks, observe = connect.doctor(run.target, now=run.screen.now, sample=sample)
    except DuelineError as error:
        run.screen.error(error)
        raise typer.Exit(NOT_CHECKED) from None
    answers, unseen = _run_checks(run, run.target.name, checks)
    observed = observe(**dict(ChainMap(*answers)))
    wrong, unseen = findings(observed), [*unseen, *observed.partly]
    for each in wrong:
        fields = {"code": each.code, "about": each.about, "what": each.what, "do": each.do, "page": each.page}
        run.screen.json({"severity": each.severity.value, **fields})
        run.screen.line(f"{each.severity.value.upper():<8}  {each.about}: {each.what}")
        run.screen.line(f"{'':8}  do: {each.do}")
        run.screen.line(f"{'':8}  see: {each.page}")
    counts = Counter(finding.severity for finding in wrong)
    nothing = "nothing is known to be wrong" if unseen else "nothing is wrong"
    nouns = {each: each.value for each in observation.Severity} | {observation.Severity.CRITICAL: "critical finding"}
    totals = ", ".join(plural(counts[each], noun) for each, noun in nouns.items() if counts[each]) or nothing
    _end(run.screen, wrong, unseen, f"{totals}; checked {len(answers)} of {plural(len(checks), 'thing')}")


def _run_checks(
    run: connect.CommandRun, about: str, checks: Sequence[observation.Check]
) -> tuple[list[Any], list[observation.Unchecked]]:
    with run.screen.progress(f"checking {about}") as bar:
        return observation.run_checks(checks, spread=retry.in_lanes, on_progress=bar)


def _end(screen: Screen, problems: Sequence[object], unseen: Sequence[observation.Unchecked], total: str) -> None:
    """Show what could not be checked and the total, and end with the exit code."""
    for each in unseen:
        fields = {"about": each.what, "what": each.reason, "needs": each.needs}
        screen.json({"severity": "unknown", "code": "not_looked_at", **fields})
        needs = f": needs the right {each.needs}" if each.needs else ""
        screen.line(f"NOT SEEN  {each.what}: not checked{needs}")
        screen.line(f"{'':8}  {each.reason}")
    screen.line(total)
    end_with([PROBLEM if problems else NOT_CHECKED if unseen else HEALTHY])


def preflight(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What you are about to deploy.")] = Path("queues.yaml"),
) -> None:
    """Check whether FILE can be deployed safely, and report what prevents it.

    That is jobs that it would strand, and what the account lacks. It changes nothing. Exit codes: 0 everything was
    checked, no problem; 1 a problem, or it is unknown whether jobs would be stranded; 6 no known problem, but not
    everything could be checked.
    """
    # It imports pydantic, which few commands need.
    from dueline.config.deployment import load

    deployment = load(file)
    run = connect.run_for(ctx, deployment.name, file=file)
    checks = connect.preflight(run.target, declared=deployment, queues=file, now=run.screen.now).checks()
    answers, unseen = _run_checks(run, deployment.name, checks)
    problems = [problem for each in answers for problem in each]
    for problem in problems:
        run.screen.json({"problem": problem.about, "what": problem.what, "do": problem.do})
        run.screen.line(f"PROBLEM   {problem.about}: {problem.what}. Do: {problem.do}")
    unsure = f"no known problem with deploying {file}, but not everything could be checked"
    total = unsure if unseen else f"everything was checked: no problem with deploying {file}"
    if problems:
        total = f"{plural(len(problems), 'problem')} with deploying {file}"
    _end(run.screen, problems, unseen, total)
