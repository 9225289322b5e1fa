"""Examine: look at all parts of a deployment, then say what is wrong, the worst first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from dueline import __version__
from dueline.config.names import runbook
from dueline.core import instant
from dueline.core.message import check_deployment
from dueline.core.queue_settings import JOBS_PER_PARTITION, PLANNER
from dueline.errors import DuelineError
from dueline.operations import backlog, doctor_functions
from dueline.operations.observation import Finding, Observation, Severity, Symptom, guide, rule

_ENABLED = "ENABLED"
_MOST_NAMED = 10
_NEAR = 0.8
_RAISE = "request a higher quota in Service Quotas"
_NONE = "before 0.1"
_MOST_REASONS = 5
# It runs each five minutes.
_WATCHED = timedelta(minutes=15)


# Ticks: schedules that are missing or disabled, fences that stand still, partitions that are too few.
@rule(
    "tick_missing",
    Severity.CRITICAL,
    page=runbook("partitions-without-tick"),
    do="create them again: ticks then catch up by themselves",
)
def schedules_missing(observed: Observation) -> Iterator[Symptom]:
    for queue in observed.deployment.ticking() if observed.schedules is not None else ():
        names = [observed.deployment.names.schedule(queue.name, number) for number in range(queue.partitions)]
        if missing := [name for name in names if name not in (observed.schedules or {})]:
            yield _without_schedules(observed, queue.name, missing, state="are missing")


@rule(
    "tick_disabled",
    Severity.CRITICAL,
    page=runbook("partitions-without-tick"),
    do="enable them: ticks then catch up by themselves",
)
def schedules_disabled(observed: Observation) -> Iterator[Symptom]:
    """Report disabled schedules of ticks, also those of removed partitions: their rows still need a tick."""
    off: dict[str, list[str]] = defaultdict(list)
    for name, state in (observed.schedules or {}).items():
        if state != _ENABLED:
            off[name.rpartition(".")[0]].append(name)
    for queue, names in off.items():
        yield _without_schedules(observed, queue, names, state="are disabled")


def _without_schedules(observed: Observation, queue: str, names: Sequence[str], *, state: str) -> Symptom:
    where = f"{named(names)} in the group {observed.deployment.names.schedule_group}"
    return Symptom(queue, f"tick schedules {state}: {where}; their jobs are not sent to workers")


@rule("watch_off", Severity.WARNING, do="enable it in EventBridge Scheduler, or deploy the core stack: make deploy")
def watches_off(observed: Observation) -> Iterator[Symptom]:
    """Report watches that do not run: without them nobody is mailed of missing ticks or stopped schedules."""
    names = observed.deployment.names
    state = (observed.watches or {}).get(names.planner_watch)
    if observed.watches is not None and state != _ENABLED:
        what = f"its schedule is {'missing' if state is None else 'disabled'}: nobody notices stopped schedules"
        yield Symptom(names.planner_watch, what, page=runbook("schedules-stand-still"))
    note = (observed.notes or {}).get("ticks")
    if note and note.at < observed.now - _WATCHED:
        what = f"it has not run since {instant.text(note.at)}: nobody is mailed what goes wrong"
        yield Symptom(names.function("watch"), what, "deploy the core stack: make deploy", runbook("watch-silent"))


@rule(
    "fence_still",
    Severity.CRITICAL,
    page=runbook("missing-ticks"),
    do="fix the findings about schedules and the tick function; without any, follow the runbook",
)
def fences_still(observed: Observation) -> Iterator[Symptom]:
    """Report partitions that no tick reads: their fence is in the past or missing."""
    now = instant.text(observed.now)
    for queue in observed.deployment.ticking() if observed.fences is not None else ():
        fences = {each: (observed.fences or {}).get(each, "") for each in queue.all_partitions()}
        if still := {str(each): fence for each, fence in fences.items() if fence < now}:
            oldest = min(still.values())
            since = f"their last ticks read up to {oldest} or later" if oldest else "some of them never had a tick"
            yield Symptom(queue.name, f"no tick reads partitions {named(list(still))}: {since}")


@rule("ttl_off", Severity.WARNING, do="fix what stops their ticks: TTL is switched on again once they have caught up")
def ttl_off(observed: Observation) -> Iterator[Symptom]:
    names = observed.deployment.names
    if observed.figure(names.deployment, "ttl_off"):
        off = "DynamoDB's TTL is switched off, or should be and cannot, because jobs are over six hours late"
        yield Symptom(names.table, off)


@rule("partitions_too_few", Severity.WARNING, page=guide("too-few-partitions"))
def partitions_too_few(observed: Observation) -> Iterator[Symptom]:
    for queue in observed.deployment.queues:
        count = queue.settings.partitions
        carried, sent = JOBS_PER_PARTITION * count, observed.figure(queue.name, "rate")
        for rate, source in ((queue.expected_rate or 0, "are expected"), (sent, "were sent to workers at most")):
            if rate > carried:
                do = f"set partitions to {-(-int(rate) // JOBS_PER_PARTITION)} in queues.yaml, then: make deploy"
                what = f"{rate:,.0f} jobs a second {source}, and {count} partitions carry {carried:,}"
                yield Symptom(queue.name, what, do)


def named(names: Sequence[str]) -> str:
    """Return names for a sentence, the first few of many.

    >>> named(["a", "b"])
    'a, b'
    """
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


@rule("quota_near", Severity.WARNING, page=guide("quotas"), do=f"{_RAISE}, or use less")
def quotas_near(observed: Observation) -> Iterator[Symptom]:
    if observed.concurrency is not None:
        used = int(observed.figure("account", "concurrency"))
        yield from _near("Lambda functions at once, in the last hour", used, observed.concurrency)
    if observed.policies is not None:
        used, quota = observed.policies.used, observed.policies.quota
        yield from _near("managed policies of the account (four a queue, and four a group)", used, quota)
    do = f"attach the policy of a group of queues, or {_RAISE}"
    for role, share in (observed.roles or {}).items():
        yield from _near(f"managed policies attached to the role {role}", share.used, share.quota, do=do)


def _near(what: str, used: int, quota: int, *, do: str = "") -> Iterator[Symptom]:
    if used >= _NEAR * quota:
        yield Symptom("account", f"{used:,} of {quota:,} {what}", do)


# Stacks that failed or are of different versions, and clients that are newer than the deployment.
@rule(
    "stack_failed",
    Severity.WARNING,
    page=guide("stacks"),
    do="fix what its events name (aws cloudformation describe-stack-events), then: make deploy",
)
def stacks_failed(observed: Observation) -> Iterator[Symptom]:
    for name, status in sorted((observed.stacks or {}).items()):
        if "FAILED" in status or "ROLLBACK" in status:
            yield Symptom(name, f"its last deployment failed: its stack is {status}")


@rule("versions_differ", Severity.WARNING, page=guide("stacks"), do="deploy all stacks with one version: make deploy")
def versions_differ(observed: Observation) -> Iterator[Symptom]:
    deployment = observed.deployment
    others: dict[str, list[str]] = defaultdict(list)
    for queue in deployment.queues:
        if queue.version != deployment.version:
            others[queue.version or _NONE].append(queue.name)
    for version, queues in others.items():
        what = f"its version is {deployment.version or _NONE}, that of the stacks of {named(queues)} {version}"
        yield Symptom(deployment.names.core_stack, what)


def clients_differ(observed: Observation) -> Iterator[Finding]:
    """Report that the deployment refuses direct clients of this version, or is of another version."""
    deployment, refusal = observed.deployment, ""
    name = deployment.names.deployment
    try:
        check_deployment(name, latest=deployment.schema, oldest=deployment.oldest_schema)
    except DuelineError as error:
        refusal = str(error)
    if not refusal and deployment.version in (None, __version__):
        return
    yield Finding(
        code="client_differs",
        severity=Severity.WARNING if refusal else Severity.NOTE,
        about=name,
        what=refusal or f"it is of version {deployment.version}, and this library is {__version__}",
        do="deploy this version (make deploy), or install the deployed one: pip install dueline==VERSION",
        page=guide("clients-of-another-version"),
    )


# Dead letters: how many there are in each dead-letter queue, and why, as far as that is known.
class _Kind(NamedTuple):
    """What a dead-letter queue's messages are: the finding's fields, and what functions log of such a message."""

    code: str
    what: str
    do: str
    logged: str = ""


_PARKED = _Kind(
    "parked_jobs",
    "jobs are parked: they can never be sent as they are",
    "fix the reason, then: dueline redrive --parked --apply",
    logged="parked",
)
_OF_INBOUND = _Kind(
    "inbound_dead_letters",
    "messages of the inbound queue are not jobs, or could not be stored for hours",
    "fix their sender; to see them: aws sqs receive-message",
    logged="rejected",
)
_OF_TICKS = _Kind(
    "failed_firings",
    "invocations of the tick function failed",
    "fix the findings about ticks; SQS deletes these messages by itself",
)
_OF_PLANNER = _Kind(
    "planner_dead_letters",
    "planning jobs failed for hours",
    "fix what the planner's log names; SQS deletes these messages within a day",
)


def _dead_letter_queues(observed: Observation) -> Iterator[tuple[str, str, _Kind]]:
    """Yield what each dead-letter queue is about, its name, and what its messages are."""
    names = observed.deployment.names
    for queue in observed.deployment.queues:
        do = f"fix the worker, then: dueline redrive {queue.name} --apply"
        yield queue.name, names.queue_dlq(queue.name), _Kind("dead_letters", "jobs failed for good", do)
    own = (names.dispatch_dlq, names.inbound_dlq, names.tick_dlq, names.queue_dlq(PLANNER.name))
    for name, kind in zip(own, (_PARKED, _OF_INBOUND, _OF_TICKS, _OF_PLANNER), strict=True):
        yield name, name, kind


def dead_letters(observed: Observation) -> Iterator[Finding]:
    """Report dead-letter queues that are not empty, with reasons from a sample or the last hour's log."""
    for about, name, kind in _dead_letter_queues(observed):
        depth = (observed.depths or {}).get(name)
        if depth and (count := depth.waiting + depth.in_flight):
            yield Finding(
                code=kind.code,
                severity=Severity.WARNING,
                about=about,
                what=f"{count:,} {kind.what}{_reasons(observed, name, kind)}",
                do=kind.do,
                page=runbook(kind.code.replace("_", "-")),
            )


def _reasons(observed: Observation, name: str, kind: _Kind) -> str:
    counted = Counter[str]()
    for each in observed.error_groups.get(name, ()):
        counted[each.error] += each.count
    where = "of a sample"
    if not counted:
        where = "of the last hour's log"
        for line in observed.logged:
            if line.message == kind.logged:
                counted[line.reason] += line.count
    reasons = "; ".join(f"{count:,} of {reason}" for reason, count in counted.most_common(_MOST_REASONS))
    return f" ({where}: {reasons})" if reasons else ""


# Alarms: those that ring, and those that nobody hears.
@rule("alarm", Severity.WARNING, page="docs/operations.md#alarms", do="follow its runbook")
def alarms_ringing(observed: Observation) -> Iterator[Symptom]:
    for alarm in observed.alarms or ():
        if alarm.is_ringing or alarm.is_silent:
            what = f"{'no data arrives for it' if alarm.is_silent else 'it is in ALARM'}: {alarm.description}"
            yield Symptom(alarm.name, what, page=alarm.page or "")


@rule(
    "alarms_gone",
    Severity.WARNING,
    page=guide("alarms-that-are-gone"),
    do="create its alarms again as its template has them",
)
def alarms_gone(observed: Observation) -> Iterator[Symptom]:
    stack = observed.deployment.names.core_stack
    if observed.alarms is not None and not any(alarm.name.startswith(f"{stack}-") for alarm in observed.alarms):
        yield Symptom(stack, "all alarms of this stack were deleted: nobody is notified of its faults")


@rule(
    "alarms_unheard",
    Severity.WARNING,
    page=guide("alarms-that-nobody-hears"),
    do="set alarm_email in queues.yaml, make deploy, and confirm the mail; or subscribe your pager",
)
def alarms_unheard(observed: Observation) -> Iterator[Symptom]:
    if silent := [alarm.name for alarm in observed.alarms or () if not alarm.notifies]:
        yield Symptom("alarms", f"these alarms notify no topic, or their actions are off: {named(silent)}")
    for topic, count in (observed.subscribers or {}).items():
        if not count:
            yield Symptom(topic, "the alarms' topic has no confirmed subscriber: nobody is notified")


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
    backlog.messages_not_received,
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


def findings(observed: Observation) -> list[Finding]:
    """Return what is wrong, the worst first."""
    all_findings = (finding for rule in RULES for finding in rule(observed))
    return sorted(all_findings, key=lambda finding: finding.severity.rank)
