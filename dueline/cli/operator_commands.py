"""What people on call run: dead letters, restored tables, and what is wrong with a deployment."""

import json
from collections import ChainMap, Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dueline.cli import connect, options
from dueline.cli.screen import AGAIN, DONE, Screen, end_with
from dueline.client.models import payload_fields
from dueline.config.names import Names
from dueline.core import retry
from dueline.core.message import Message
from dueline.core.ports import QueueMessage
from dueline.core.text import named, plural
from dueline.errors import DuelineError, InvalidJob
from dueline.operations import dead_letters, observation
from dueline.operations.doctor import findings
from dueline.operations.redrive import HIDDEN_SECONDS, Redrive, RedriveQueues, RedriveResult
from dueline.operations.restore import BEFORE, LATER, NOW, SETTLED, THERE, UNREADABLE, RestoreResult

# Exit codes of doctor and preflight.
HEALTHY, PROBLEM, NOT_CHECKED = 0, 1, 6
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without it, only show what it would do.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


def _is_confirmed(screen: Screen, preview: Callable[[], bool], question: str, *, yes: bool, option: str) -> bool:
    """Show a preview of what an option does, unless --yes is given, and return whether to do it.

    `preview` returns whether there is anything to do. Raises typer.BadParameter where nobody can confirm.
    """
    if yes:
        return True
    screen.check_can_confirm(option)
    return preview() and typer.confirm(question, err=True)


# Dead letters.
_LISTED = 100
OlderThan = Annotated[datetime | None, options.time_option("Sent longer ago, such as 2h.", parser=options.ago)]
YoungerThan = Annotated[datetime | None, options.time_option("Sent since so long ago.", parser=options.ago)]
OfError = Annotated[list[str] | None, typer.Option("--error", metavar="TYPE", help="Of this error; can be repeated.")]
OfKind = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help='Of this kind, "" for none; can be repeated.')
]
OfId = Annotated[list[str] | None, typer.Option(metavar="ID", help="This job; can be repeated.")]


def dead(
    ctx: typer.Context,
    queue: options.AnyQueue = None,
    parked: Annotated[bool, typer.Option("--parked", help="Parked jobs instead: of QUEUE, or of all queues.")] = False,
    payload: Annotated[bool, typer.Option("--payload", help="Show payloads and stack traces too.")] = False,
    retry_: Annotated[bool, typer.Option("--retry", help="Put them back into the queue.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete them for good.")] = False,
    yes: Yes = False,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    error: OfError = None,
    kind: OfKind = None,
    id: OfId = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=options.MOST_LISTED,
            help=f"How many at most; {_LISTED} are listed by default.",
            show_default=False,
        ),
    ] = None,
    past_retention: Annotated[
        bool, typer.Option("--past-retention", help="With --parked: also put back jobs past their retention.")
    ] = False,
) -> None:
    """Show a queue's dead letters, put them back or delete them.

    With --retry or --delete, what was counted is put back or deleted, after a confirmation. Reading hides them from
    others meanwhile. Ages count from when the message was last sent to SQS, which its own move to a dead-letter queue
    leaves as it was.
    """
    run: connect.CommandRun = ctx.obj
    if not (queue or parked):
        raise typer.BadParameter("give a QUEUE, --parked, or both")
    if past_retention and not (parked and retry_):
        raise typer.BadParameter("--past-retention goes with --parked --retry")
    if retry_ and delete:
        raise typer.BadParameter("--retry and --delete are both given: give one of them")
    selection = dead_letters.DeadLetterFilter(
        errors=frozenset(error or ()),
        kinds=frozenset(kind or ()),
        ids=frozenset(id or ()),
        queue=queue if parked else None,
        sent_before=older_than,
        sent_after=younger_than,
    )
    ends = connect.dead_letters(run.target, None if parked else queue)
    source = f"queue {queue}" if not parked else f"parked jobs of queue {queue}" if queue else "parked jobs"
    chosen = _ChosenDeadLetters(run=run, ends=ends, source=source, is_parked=parked, selection=selection, limit=limit)
    if delete:
        chosen.change(Redrive.delete, done="deleted", question="Delete them for good?", yes=yes, option="--delete")
    elif retry_:
        rule = partial(dead_letters.to_its_queue, levels=len(ends.queues))
        if parked:
            rule = partial(dead_letters.to_inbound, now=run.screen.now, past_retention=past_retention)
        chosen.change(Redrive.apply, done="put back", question="Put them back?", yes=yes, option="--retry", rule=rule)
    else:
        chosen.list(with_payloads=payload)


@dataclass(frozen=True, kw_only=True)
class _ChosenDeadLetters:
    """The dead letters of a `source` that a command's options select."""

    run: connect.CommandRun
    ends: RedriveQueues
    source: str
    is_parked: bool
    selection: dead_letters.DeadLetterFilter
    limit: int | None

    def list(self, *, with_payloads: bool) -> None:
        """Count them, and show them one by one: all up to a limit that is given, else the first ones."""
        messages, most = list[QueueMessage](), self.limit or _LISTED

        def keep(message: QueueMessage) -> None:
            if len(messages) < most:
                messages.append(message)

        def show(result: RedriveResult) -> None:
            _show_each(self.run.screen, sorted(messages, key=lambda each: each.sent), with_payloads=with_payloads)
            self._show_counts(result)
            if result.selected > len(messages):
                self.run.screen.line(f"the first {most:,} are listed: --limit shows more")

        self._carry_out(Redrive.look, show, selection=self.selection, limit=self.limit, on_selected=keep)

    def change(
        self, act: Callable[[Redrive], RedriveResult], *, done: str, question: str, yes: bool, option: str, **rule: Any
    ) -> None:
        """Put them back, or delete them: those that a preview counted, unless `yes`."""
        counted = set[str]()

        def preview() -> bool:
            of_preview = {"selection": self.selection, "on_selected": lambda each: counted.add(each.message_id)}
            self._carry_out(Redrive.look, self._show_counts, limit=self.limit, **of_preview, **rule)
            return bool(counted)

        if _is_confirmed(self.run.screen, preview, question, yes=yes, option=option):
            selection = replace(self.selection, messages=frozenset(counted))
            show = partial(self._show_change, done=done)
            result = self._carry_out(act, show, selection=selection, limit=self.limit, **rule)
            end_with([AGAIN if result.failed else DONE])

    def _carry_out(
        self, act: Callable[[Redrive], RedriveResult], show: Callable[[RedriveResult], object], **options: Any
    ) -> RedriveResult:
        """Do a run and show its result: of one that changes something and fails, what it did."""
        screen = self.run.screen
        with screen.progress(f"reading {self.source}") as bar:
            calls = connect.retrying(retry.Patience())
            redrive = Redrive(self.ends, calls=calls, spread=retry.in_lanes, on_progress=bar, **options)
            try:
                result = act(redrive)
            except (Exception, KeyboardInterrupt):
                if act is not Redrive.look and redrive.result.there:
                    show(redrive.result)
                    _show_rest(screen, redrive.result, "were not received before it failed")
                raise
        show(result)
        _show_rest(screen, result, f"did not arrive: try again in {HIDDEN_SECONDS // 60} minutes")
        return result

    def _show_change(self, result: RedriveResult, *, done: str) -> None:
        counts = {"found": result.received, "wanted": result.selected, done.replace(" ", "_"): result.moved}
        counts |= {"hidden": result.hidden, "not_received": result.not_received}
        reasons = {"stay": dead_letters.reasons_json(result.stay), "failed": dead_letters.reasons_json(result.failed)}
        by_error = {"by_error": dead_letters.error_groups_json(result.kinds)}
        self.run.screen.json({"of": self.source, **counts, **by_error, **reasons})
        self._show_counts(result, did=f": {result.moved:,} {done}")

    def _show_counts(self, result: RedriveResult, *, did: str = "") -> None:
        """Show how many there are of each error, and why some cannot be put back."""
        screen = self.run.screen
        if result.kinds:
            rows = ((each.error, each.kind, each.count, each.oldest, each.newest) for each in result.kinds)
            screen.table(("error", "kind", "jobs", "oldest", "newest"), rows, optional=["kind"])
        noun, of = ("parked job", "") if self.is_parked else ("dead letter", f" of {self.source}")
        none = f"no {noun}{of} was received" if result.hidden or result.not_received else f"there are no {noun}s{of}"
        counts = f"{result.selected:,} of {plural(result.received, noun)}{of}{did}"
        screen.line(counts if result.received else none)
        if result.others and not result.selected:
            others = named([f"{each.count:,} of {each.error}" for each in result.others])
            screen.line(f"none matches the options; there are {others}")
        for reason, count in (*result.stay.items(), *result.failed.items()):
            screen.line(f"{count:,} stay{'s' if count == 1 else ''}: {reason}")


def _show_each(screen: Screen, messages: Sequence[QueueMessage], *, with_payloads: bool) -> None:
    rows = []
    for message in messages:
        fields = dead_letters.dead_letter_json(message)
        content = _payload_of(message.message) if with_payloads else {}
        screen.json(fields | content)
        screen.ids(fields["id"])
        row = {name: fields[name] for name in ("id", "sent", "error", "kind", "attempts", "reason", "key", "tenant")}
        row["sent"] = message.sent
        rows.append(row)
        if with_payloads:
            texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in content.items()}
            screen.record(row | {name.replace("_", " "): text for name, text in texts.items()})
            for line in (*(fields["stack"] or "").splitlines(), ""):
                screen.line(f"    {line}".rstrip())
    if rows and not with_payloads:
        screen.table([*rows[0]], ([*row.values()] for row in rows), optional=rows[0])


def _payload_of(message: Message) -> dict[str, Any]:
    try:
        return payload_fields(message.job())
    except InvalidJob:
        return {"payload_text": message.body}


def _show_rest(screen: Screen, result: RedriveResult, why: str) -> None:
    """Show how many messages a run did not get, those in flight apart."""
    if result.hidden:
        screen.line(f"{result.hidden:,} more in flight, and visible again within {HIDDEN_SECONDS // 60} minutes")
    if result.not_received:
        screen.line(f"about {result.not_received:,} more {why}")


# Tables that were restored to a point in time.
_COLUMNS = {
    BEFORE: "handed over before",
    SETTLED: "cancelled or sent late",
    THERE: "there already",
    NOW: "now",
    LATER: "later",
    UNREADABLE: "unreadable",
}


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
    run: connect.CommandRun = ctx.obj
    _check_tables(run, jobs, state, hand_over_from)

    def run_once(*, apply: bool) -> RestoreResult:
        with run.screen.progress(f"{'restoring' if apply else 'reading'} {jobs}") as bar:
            restore = connect.restore(
                run.target, jobs=jobs, state=state, hand_over_from=hand_over_from, on_progress=bar
            )
            result = restore.apply() if apply else restore.look()
        _show_restored(run.screen, result, applied=apply)
        return result

    def preview() -> bool:
        return not run_once(apply=False).is_over

    if not apply:
        preview()
    elif _is_confirmed(run.screen, preview, "Take them over?", yes=yes, option="--apply"):
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
    if not applied:
        screen.line("no backup has what came after it: docs/restore.md#what-comes-back")
    return screen.line(f"rows: {result.rows:,}; " + ("taken over" if applied else "--apply takes them over"))


# What is wrong with a deployment, and what prevents the next.
def doctor(ctx: typer.Context) -> None:
    """Report what is wrong with the deployment, and what to do.

    The worst comes first. It changes nothing. Exit codes: 0 everything was checked and is well; 1 something is wrong; 6
    nothing is known to be wrong, but not everything could be checked.
    """
    run: connect.CommandRun = ctx.obj
    try:
        checks, observe = connect.doctor(run.target, now=run.screen.now)
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
