"""Examine: look at all parts of a deployment, then say what is wrong, the worst first."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dueline import __version__
from dueline.config.names import Names, runbook
from dueline.core import instant
from dueline.core.message import check_deployment
from dueline.core.ports import ParallelMap
from dueline.core.queue_settings import JOBS_PER_PARTITION, PLANNER
from dueline.errors import DuelineError
from dueline.operations import backlog, doctor_functions
from dueline.operations.observation import (
    DeployedQueue,
    DoctorReport,
    Finding,
    Observation,
    ObservedDeployment,
    Severity,
    Share,
    Unchecked,
    guide,
)

ENABLED = "ENABLED"
_MOST_NAMED = 10
NEAR = 0.8
_RAISE = "request a higher quota in Service Quotas"
_NONE = "before 0.1"
_MOST_REASONS = 5


# Ticks: schedules that are missing or disabled, fences that stand still, partitions that are too few.
def schedules_missing(observed: Observation) -> Iterator[Finding]:
    """Report partitions whose tick has no schedule."""
    for queue in observed.deployment.ticking() if observed.schedules is not None else ():
        there = observed.schedules or {}
        names = [observed.deployment.names.schedule(queue.name, number) for number in range(queue.partitions)]
        if missing := [name for name in names if name not in there]:
            yield _of_ticks(
                queue.name, observed, missing, code="tick_missing", state="are missing", do="create them again"
            )


def schedules_disabled(observed: Observation) -> Iterator[Finding]:
    """Report disabled schedules of ticks, also those of removed partitions: their rows still need a tick."""
    off: dict[str, list[str]] = {}
    for name, state in (observed.schedules or {}).items():
        if state != ENABLED:
            off.setdefault(name.rpartition(".")[0], []).append(name)
    for queue, names in off.items():
        yield _of_ticks(queue, observed, names, code="tick_disabled", state="are disabled", do="enable them")


def _of_ticks(queue: str, observed: Observation, names: Sequence[str], *, code: str, state: str, do: str) -> Finding:
    group = observed.deployment.names.schedule_group
    return Finding(
        code=code,
        severity=Severity.CRITICAL,
        about=queue,
        what=f"tick schedules {state}: {named(names)} in the group {group}; their jobs are not sent to workers",
        do=f"{do}: ticks then catch up by themselves",
        page=runbook("partitions-without-tick"),
    )


def watches_off(observed: Observation) -> Iterator[Finding]:
    """Report watches that do not fire: without them no alarm notices missing ticks or stopped schedules."""
    names = observed.deployment.names
    for name in (names.watch, names.planner_watch) if observed.watches is not None else ():
        state = (observed.watches or {}).get(name)
        if state != ENABLED:
            yield Finding(
                code="watch_off",
                severity=Severity.WARNING,
                about=name,
                what=f"its schedule is {'missing' if state is None else 'disabled'}: no alarm notices stopped ticks",
                do="enable it in EventBridge Scheduler, or deploy the core stack: make deploy",
                page=runbook("partitions-without-tick" if name == names.watch else "schedules-stand-still"),
            )


def fences_still(observed: Observation) -> Iterator[Finding]:
    """Report partitions that no tick reads: their fence is in the past or missing."""
    now = instant.text(observed.now)
    for queue in observed.deployment.ticking() if observed.fences is not None else ():
        fences = {each: (observed.fences or {}).get(each, "") for each in queue.all_partitions()}
        if still := {str(each): fence for each, fence in fences.items() if fence < now}:
            oldest = min(still.values())
            since = f"their last ticks read up to {oldest} or later" if oldest else "some of them never had a tick"
            yield Finding(
                code="fence_still",
                severity=Severity.CRITICAL,
                about=queue.name,
                what=f"no tick reads partitions {named(list(still))}: {since}",
                do="fix the findings about schedules and the tick function; without any, follow the runbook",
                page=runbook("missing-ticks"),
            )


def ttl_off(observed: Observation) -> Iterator[Finding]:
    """Report that DynamoDB's TTL is off, because jobs are hours late."""
    if observed.figure(observed.deployment.names.deployment, "ttl_off"):
        yield Finding(
            code="ttl_off",
            severity=Severity.WARNING,
            about=observed.deployment.names.table,
            what="DynamoDB's TTL is switched off, or should be and cannot, because jobs are over six hours late",
            do="fix what stops their ticks: TTL is switched on again once they have caught up",
            page=runbook("ttl-off"),
        )


def partitions_too_few(observed: Observation) -> Iterator[Finding]:
    """Report queues whose partitions carry less than the expected or the measured rate."""
    for queue in observed.deployment.queues:
        carried = JOBS_PER_PARTITION * queue.settings.partitions
        sent = observed.figure(queue.name, "rate")
        for rate, source in ((queue.expected_rate or 0, "are expected"), (sent, "were sent to workers at most")):
            if rate > carried:
                yield _too_few(queue, rate, source)


def _too_few(queue: DeployedQueue, rate: float, source: str) -> Finding:
    count = queue.settings.partitions
    return Finding(
        code="partitions_too_few",
        severity=Severity.WARNING,
        about=queue.name,
        what=f"{rate:,.0f} jobs a second {source}, and {count} partitions carry {JOBS_PER_PARTITION * count:,}",
        do=f"set partitions to {-(-int(rate) // JOBS_PER_PARTITION)} in queues.yaml, then: make deploy",
        page=guide("too-few-partitions"),
    )


def named(names: Sequence[str]) -> str:
    """Return names for a sentence, the first few of many.

    >>> named(["a", "b"])
    'a, b'
    """
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# Quotas: those of the account that a deployment is near.
def quotas_near(observed: Observation) -> Iterator[Finding]:
    """Report quotas that are used by four fifths."""
    if observed.concurrency is not None:
        used = int(observed.figure("account", "concurrency"))
        yield from _near("Lambda functions at once, in the last hour", Share(used=used, quota=observed.concurrency))
    if observed.policies is not None:
        yield from _near("managed policies of the account (four a queue, and four a group)", observed.policies)
    for role, share in (observed.roles or {}).items():
        what = f"managed policies attached to the role {role}"
        yield from _near(what, share, do=f"attach the policy of a group of queues, or {_RAISE}")


def _near(what: str, share: Share, *, do: str = f"{_RAISE}, or use less") -> Iterator[Finding]:
    if share.used >= NEAR * share.quota:
        yield Finding(
            code="quota_near",
            severity=Severity.WARNING,
            about="account",
            what=f"{share.used:,} of {share.quota:,} {what}",
            do=do,
            page=guide("quotas"),
        )


# Deployed: stacks that failed or are of different versions, and clients that are newer than the deployment.
def stacks_failed(observed: Observation) -> Iterator[Finding]:
    """Report stacks whose last deployment failed."""
    for name, status in sorted((observed.stacks or {}).items()):
        if "FAILED" in status or "ROLLBACK" in status:
            yield Finding(
                code="stack_failed",
                severity=Severity.WARNING,
                about=name,
                what=f"its last deployment failed: its stack is {status}",
                do="fix what its events name (aws cloudformation describe-stack-events), then: make deploy",
                page=guide("stacks"),
            )


def versions_differ(observed: Observation) -> Iterator[Finding]:
    """Report queues whose stack is of another version than the core stack."""
    deployment = observed.deployment
    others: dict[str, list[str]] = {}
    for queue in deployment.queues:
        if queue.version != deployment.version:
            others.setdefault(queue.version or _NONE, []).append(queue.name)
    for version, queues in others.items():
        yield Finding(
            code="versions_differ",
            severity=Severity.WARNING,
            about=deployment.names.core_stack,
            what=f"its version is {deployment.version or _NONE}, that of the stacks of {named(queues)} {version}",
            do="deploy all stacks with one version: make deploy",
            page=guide("stacks"),
        )


def clients_differ(observed: Observation) -> Iterator[Finding]:
    """Report that the deployment refuses direct clients of this version, or is of another version."""
    deployment = observed.deployment
    refusal = _refusal(deployment)
    if refusal is None and deployment.version in (None, __version__):
        return
    yield Finding(
        code="client_differs",
        severity=Severity.NOTE if refusal is None else Severity.WARNING,
        about=deployment.names.deployment,
        what=refusal or f"it is of version {deployment.version}, and this library is {__version__}",
        do="deploy this version (make deploy), or install the deployed one: pip install dueline==VERSION",
        page=guide("clients-of-another-version"),
    )


def _refusal(deployment: ObservedDeployment) -> str | None:
    name, latest, oldest = deployment.names.deployment, deployment.schema, deployment.oldest_schema
    try:
        check_deployment(name, latest=latest, oldest=oldest)
    except DuelineError as error:
        return str(error)
    return None


# Dead letters: how many there are in each dead-letter queue, and why, as far as that is known.
@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """What a dead-letter queue's messages are: the finding's fields. `queue` returns the queue's name."""

    queue: Callable[[Names], str]
    code: str
    page: str
    what: str
    do: str


_OF_THE_DEPLOYMENT = (
    _Kind(
        queue=lambda names: names.dispatch_dlq,
        code="parked_jobs",
        page="parked-jobs",
        what="jobs are parked: they can never be sent as they are",
        do="fix the reason, then: dueline redrive --parked --apply",
    ),
    _Kind(
        queue=lambda names: names.inbound_dlq,
        code="inbound_dead_letters",
        page="inbound-dead-letters",
        what="messages of the inbound queue are not jobs, or could not be stored for hours",
        do="fix their sender; to see them: aws sqs receive-message",
    ),
    _Kind(
        queue=lambda names: names.tick_dlq,
        code="failed_firings",
        page="failed-firings",
        what="invocations of the tick function failed",
        do="fix the findings about ticks; SQS deletes these messages by itself",
    ),
    _Kind(
        queue=lambda names: names.queue_dlq(PLANNER.name),
        code="planner_dead_letters",
        page="planner-dead-letters",
        what="planning jobs failed for hours",
        do="fix what the planner's log names; SQS deletes these messages within a day",
    ),
)


def dead_letters(observed: Observation) -> Iterator[Finding]:
    """Report dead-letter queues that are not empty, with reasons from a sample or the last hour's log."""
    names = observed.deployment.names
    of_queues = [(queue.name, _of_queue(queue.name)) for queue in observed.deployment.queues]
    for about, kind in (*of_queues, *((each.queue(names), each) for each in _OF_THE_DEPLOYMENT)):
        depth = (observed.depths or {}).get(kind.queue(names))
        count = depth.waiting + depth.in_flight if depth else 0
        if count:
            yield Finding(
                code=kind.code,
                severity=Severity.WARNING,
                about=about,
                what=f"{count:,} {kind.what}{_reasons(observed, kind)}",
                do=kind.do,
                page=runbook(kind.page),
            )


def _of_queue(queue: str) -> _Kind:
    return _Kind(
        queue=lambda names: names.queue_dlq(queue),
        code="dead_letters",
        page="dead-letters",
        what="jobs failed for good",
        do=f"fix the worker, then: dueline redrive {queue} --apply",
    )


# What functions log of a message that they put into a dead-letter queue.
_LOGGED = {"parked_jobs": "parked", "inbound_dead_letters": "rejected"}


def _reasons(observed: Observation, kind: _Kind) -> str:
    sampled = observed.error_groups.get(kind.queue(observed.deployment.names), ())
    counted: Counter[str] = Counter({each.error: each.count for each in sampled})
    where = "of a sample"
    if not counted:
        where = "of the last hour's log"
        for line in observed.logged:
            if line.message == _LOGGED.get(kind.code):
                counted[line.reason] += line.count
    reasons = "; ".join(f"{count:,} of {reason}" for reason, count in counted.most_common(_MOST_REASONS))
    return f" ({where}: {reasons})" if reasons else ""


# Alarms: those that ring, and those that nobody hears.
def alarms_ringing(observed: Observation) -> Iterator[Finding]:
    """Report alarms that ring, and those whose metric reports no data any more."""
    for alarm in observed.alarms or ():
        if alarm.is_ringing or alarm.is_silent:
            yield Finding(
                code="alarm",
                severity=Severity.WARNING,
                about=alarm.name,
                what=f"{'no data arrives for it' if alarm.is_silent else 'it is in ALARM'}: {alarm.description}",
                do="follow its runbook",
                page=alarm.page or "docs/operations.md#alarms",
            )


def alarms_gone(observed: Observation) -> Iterator[Finding]:
    """Report stacks without any alarm: each creates some."""
    names = observed.deployment.names
    stacks = [names.core_stack, *(names.queue_stack(queue.name) for queue in observed.deployment.queues)]
    for stack in stacks if observed.alarms is not None else ():
        if not any(_is_of(alarm.name, stack) for alarm in observed.alarms or ()):
            yield Finding(
                code="alarms_gone",
                severity=Severity.WARNING,
                about=stack,
                what="all alarms of this stack were deleted: nobody is notified of its faults",
                do="create its alarms again as its template has them",
                page=guide("alarms-that-are-gone"),
            )


def _is_of(alarm: str, stack: str) -> bool:
    """Return whether an alarm is of a stack and not of one whose name goes on: behind it comes a logical id."""
    return alarm.startswith(f"{stack}-") and alarm[len(stack) + 1 :][:1].isupper()


def alarms_unheard(observed: Observation) -> Iterator[Finding]:
    """Report alarms that notify nobody, and topics without a subscriber."""
    if silent := [alarm.name for alarm in observed.alarms or () if not alarm.notifies]:
        yield _unheard("alarms", f"these alarms notify no topic, or their actions are off: {named(silent)}")
    for topic, count in (observed.subscribers or {}).items():
        if not count:
            yield _unheard(topic, "the alarms' topic has no confirmed subscriber: nobody is notified")


def _unheard(about: str, what: str) -> Finding:
    return Finding(
        code="alarms_unheard",
        severity=Severity.WARNING,
        about=about,
        what=what,
        do="set alarm_email in queues.yaml, make deploy, and confirm the mail; or subscribe your pager",
        page=guide("alarms-that-nobody-hears"),
    )


# Of one severity, the first come first.
RULES: tuple[Callable[[Observation], Iterable[Finding]], ...] = (
    schedules_missing,
    schedules_disabled,
    fences_still,
    backlog.queues_gone,
    backlog.late_jobs,
    ttl_off,
    backlog.inbound_backlog,
    backlog.messages_kept_long,
    backlog.queues_left,
    doctor_functions.functions_stopped,
    dead_letters,
    doctor_functions.functions_failing,
    doctor_functions.functions_throttled,
    doctor_functions.logs_gone,
    doctor_functions.api_faults,
    doctor_functions.api_unreached,
    backlog.tables_throttled,
    doctor_functions.lines_of_trouble,
    doctor_functions.schedules_stood_still,
    backlog.delayed_jobs,
    watches_off,
    partitions_too_few,
    stacks_failed,
    versions_differ,
    clients_differ,
    quotas_near,
    alarms_ringing,
    alarms_gone,
    alarms_unheard,
    backlog.queues_stopped,
)


# What a check could not read of its parts.
PARTLY = "partly"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check of a deployment: what it reads, in words, and the rights that it needs."""

    what: str
    needs: str
    look: Callable[[], dict[str, Any]]


def examine(
    looks: Sequence[Check],
    *,
    observe: Callable[..., Observation],
    spread: ParallelMap = map,
    on_progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> DoctorReport:
    """Run all checks and judge what they saw. A check that fails is reported, and hides nothing else."""
    parts: dict[str, Any] = {}
    unseen: list[Unchecked] = []
    for done, answer in enumerate(spread(_answer, looks), start=1):
        if isinstance(answer, Unchecked):
            unseen.append(answer)
        else:
            unseen += answer.pop(PARTLY, ())
            parts |= answer
        on_progress(done, len(looks))
    return DoctorReport(findings=tuple(findings(observe(**parts))), unseen=tuple(unseen))


def findings(observed: Observation) -> list[Finding]:
    """Return what is wrong, the worst first."""
    all_findings = (finding for rule in RULES for finding in rule(observed))
    return sorted(all_findings, key=lambda finding: finding.severity.rank)


def _answer(look: Check) -> dict[str, Any] | Unchecked:
    try:
        return look.look()
    except DuelineError as error:
        return Unchecked(what=look.what, needs=look.needs, reason=str(error))
