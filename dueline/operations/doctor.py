"""The doctor: all findings, about jobs and ticks, functions, tables, the API and alarms, the worst first."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from dueline.config.names import runbook
from dueline.core import instant
from dueline.core.queue_settings import JOBS_PER_PARTITION, PLANNER
from dueline.core.text import named
from dueline.operations.observation import FUNCTIONS, RULES, Finding, Observation, Severity, guide, rule

_ENABLED = "ENABLED"
_MOST_REASONS = 5
# It runs each five minutes.
_WATCHED = timedelta(minutes=15)
# Those at which the alarms ring.
LATE_SECONDS = 60
INBOUND_SECONDS = 300
_ON_TIME_PERCENT = 99.9
# Of the time for which SQS keeps a message.
_LONG_KEPT = 0.5
# Those that read a queue by themselves.
SOURCES = ("ingest", "planner")
# What a function logs when something holds it up, and the page about it.
PAGES_OF_LINES = {
    "stopped": "late-jobs",
    "left": "inbound-backlog",
    "refused": "api-faults",
    "steps were given up": "schedules-stand-still",
    "schedules stood still": "schedules-stand-still",
}
_RUN_AGAIN = "remove it: aws lambda delete-function-concurrency --function-name NAME"
_MAP = "enable it: aws lambda update-event-source-mapping --enabled, or create it as the core stack's template has it"
_WAITS_FOR = {"ingest": "inbound-backlog", "planner": "schedules-stand-still"}


# Ticks: schedules that are missing or disabled, fences that stand still, partitions that are too few.
@rule(
    "tick_missing",
    Severity.CRITICAL,
    page=runbook("partitions-without-tick"),
    do="create them again: ticks then catch up by themselves",
)
def schedules_missing(observed: Observation) -> Iterator[Finding]:
    if observed.schedules is None:
        return
    for queue in observed.deployment.ticking():
        names = [observed.deployment.names.schedule(queue.name, number) for number in range(queue.partitions)]
        if missing := [name for name in names if name not in observed.schedules]:
            yield _without_schedules(observed, queue.name, missing, state="are missing")


@rule(
    "tick_disabled",
    Severity.CRITICAL,
    page=runbook("partitions-without-tick"),
    do="enable them: ticks then catch up by themselves",
)
def schedules_disabled(observed: Observation) -> Iterator[Finding]:
    """Report disabled schedules of ticks, also those of removed partitions: their rows still need a tick."""
    off: dict[str, list[str]] = defaultdict(list)
    for name, state in (observed.schedules or {}).items():
        if state != _ENABLED:
            off[name.rpartition(".")[0]].append(name)
    for queue, names in off.items():
        yield _without_schedules(observed, queue, names, state="are disabled")


def _without_schedules(observed: Observation, queue: str, names: Sequence[str], *, state: str) -> Finding:
    where = f"{named(names)} in the group {observed.deployment.names.schedule_group}"
    return Finding(queue, f"tick schedules {state}: {where}; their jobs are not sent to workers")


@rule(
    "fence_still",
    Severity.CRITICAL,
    page=runbook("missing-ticks"),
    do="fix the findings about schedules and the tick function; without any, follow the runbook",
)
def fences_still(observed: Observation) -> Iterator[Finding]:
    """Report partitions that no tick reads: their fence is in the past or missing."""
    now = instant.text(observed.now)
    if observed.fences is None:
        return
    for queue in observed.deployment.ticking():
        fences = {each: observed.fences.get(each, "") for each in queue.all_partitions()}
        if still := {str(each): fence for each, fence in fences.items() if fence < now}:
            oldest = min(still.values())
            since = f"their last ticks read up to {oldest} or later" if oldest else "some of them never had a tick"
            yield Finding(queue.name, f"no tick reads partitions {named(list(still))}: {since}")


@rule(
    "queue_gone",
    Severity.CRITICAL,
    page=guide("queues-that-are-gone"),
    do="create it again as its stack's template has it, then: dueline dead --parked --retry",
)
def queues_gone(observed: Observation) -> Iterator[Finding]:
    for name, depth in observed.depths.items():
        if depth is None:
            yield Finding(name, "this SQS queue does not exist: its jobs are parked or refused")


@rule("late_jobs", Severity.CRITICAL, do="fix the other findings: its ticks then catch up by themselves")
def late_jobs(observed: Observation) -> Iterator[Finding]:
    for queue in observed.deployment.ticking():
        seconds = observed.figure(queue.name, "lateness")
        if seconds >= LATE_SECONDS:
            yield Finding(queue.name, f"its oldest job not sent to workers is {seconds:,.0f} s late")


@rule("ttl_off", Severity.WARNING, do="fix what stops their ticks: TTL is switched on again once they have caught up")
def ttl_off(observed: Observation) -> Iterator[Finding]:
    names = observed.deployment.names
    if observed.figure(names.deployment, "ttl_off"):
        off = "DynamoDB's TTL is switched off, or should be and cannot, because jobs are over six hours late"
        yield Finding(names.table, off)


@rule(
    "inbound_backlog",
    Severity.CRITICAL,
    do="fix the other findings; without any, raise ingest_max_concurrency in queues.yaml, then: make deploy",
)
def inbound_backlog(observed: Observation) -> Iterator[Finding]:
    inbound = observed.deployment.names.inbound
    depth, age = observed.depths.get(inbound), observed.figures.get((inbound, "age"))
    is_unknown = age is None and depth is not None and depth.waiting > 0 and not depth.in_flight
    if is_unknown or (age is not None and age >= INBOUND_SECONDS):
        messages = _counted(depth.waiting if depth else 0, "message waits", "messages wait")
        since = "since when is not known" if age is None else f"the oldest for {age:,.0f} s"
        yield Finding(inbound, f"{messages} for ingest, {since}")


@rule(
    "messages_kept_long",
    Severity.CRITICAL,
    page="docs/doctor.md#workers-that-do-not-keep-up",
    do="run workers: SQS deletes such messages without a dead letter",
)
def messages_kept_long(observed: Observation) -> Iterator[Finding]:
    """Report queues whose messages SQS will soon delete, because no worker receives them."""
    for queue in observed.deployment.queues:
        for name in observed.deployment.levels(queue):
            depth, age = observed.depths.get(name), timedelta(seconds=observed.figure(name, "age"))
            if depth and age >= _LONG_KEPT * depth.retention:
                waited = f"a message of {name} has waited for {_hours(age)}, and SQS deletes it after"
                yield Finding(queue.name, f"{waited} {_hours(depth.retention)}{_stopped(observed, queue.name)}")


@rule(
    "not_received",
    Severity.WARNING,
    page=guide("queues-without-a-worker"),
    do="run a worker of this queue (dueline worker MODULE:NAME); if one runs, its log says what is wrong",
)
def messages_not_received(observed: Observation) -> Iterator[Finding]:
    """Report queues where jobs wait and none is in flight, unless the oldest came in the last minute.

    Not of queues with a rate, where that is normal for a moment, nor of what `messages_kept_long` reports.
    """
    reported = {finding.about for finding in messages_kept_long(observed)}
    for queue in observed.deployment.queues:
        names, control = observed.deployment.levels(queue), observed.controls.get(queue.name)
        depths = [depth for name in names if (depth := observed.depths.get(name))]
        waiting, in_flight = sum(depth.waiting for depth in depths), sum(depth.in_flight for depth in depths)
        is_limited = control is not None and (control.paused or control.rate is not None)
        if not waiting or in_flight or is_limited or queue.name in reported:
            continue
        age = max((observed.figures[name, "age"] for name in names if (name, "age") in observed.figures), default=None)
        if age is None or age >= LATE_SECONDS:
            since = "since when is not known" if age is None else f"the oldest for {age:,.0f} s"
            jobs = _counted(waiting, "job waits", "jobs wait")
            yield Finding(queue.name, f"about {jobs}, {since}, and none is being processed: is a worker running?")


@rule(
    "queue_left",
    Severity.WARNING,
    page=guide("queues-that-were-given-up"),
    do="deploy the queue or priority again until it is empty, then delete it: aws sqs delete-queue",
)
def queues_left(observed: Observation) -> Iterator[Finding]:
    """Report SQS queues with messages whose queue or priority was removed: workers do not read them."""
    for name, depth in sorted(observed.left.items()):
        if count := depth.waiting + depth.in_flight:
            messages = _counted(count, "message is", "messages are")
            what = f"{messages} in this SQS queue, whose queue or priority is not deployed any more"
            lost = f"no worker receives from it, and SQS deletes each after {_hours(depth.retention)}"
            yield Finding(name, f"{what}: {lost}")


@rule(
    "jobs_not_on_time",
    Severity.WARNING,
    do="fix the other findings about this queue; without any, callers scheduled these jobs late",
)
def delayed_jobs(observed: Observation) -> Iterator[Finding]:
    """Report queues of whose jobs over one in a thousand were over a minute late in the last hour."""
    for queue in observed.deployment.queues:
        on_time, delayed = (observed.figure(queue.name, each) for each in ("on_time", "delayed"))
        share = 100 * on_time / (on_time + delayed) if delayed else 100.0
        if share < _ON_TIME_PERCENT:
            on_time_share = f"{share:.1f} % of its jobs of the last hour were on time"
            yield Finding(queue.name, f"{on_time_share}, {_counted(delayed, 'was', 'were')} not")


@rule("watch_off", Severity.WARNING, do="enable it in EventBridge Scheduler, or deploy the core stack: make deploy")
def watches_off(observed: Observation) -> Iterator[Finding]:
    """Report watches that do not run: without them nobody is mailed of missing ticks or stopped schedules."""
    names = observed.deployment.names
    state = (observed.watches or {}).get(names.planner_watch)
    if observed.watches is not None and state != _ENABLED:
        what = f"its schedule is {'missing' if state is None else 'disabled'}: nobody notices stopped schedules"
        yield Finding(names.planner_watch, what, page=runbook("schedules-stand-still"))
    note = observed.notes.get("ticks")
    if note and note.at < observed.now - _WATCHED:
        what = f"it has not run since {instant.text(note.at)}: nobody is mailed what goes wrong"
        yield Finding(names.function("watch"), what, "deploy the core stack: make deploy", runbook("watch-silent"))


@rule("partitions_too_few", Severity.WARNING, page=guide("too-few-partitions"))
def partitions_too_few(observed: Observation) -> Iterator[Finding]:
    for queue in observed.deployment.queues:
        partitions = _counted(queue.partitions, "partition carries", "partitions carry")
        carried, sent = JOBS_PER_PARTITION * queue.partitions, observed.figure(queue.name, "rate")
        if sent > carried:
            do = f"set partitions to {-(-int(sent) // JOBS_PER_PARTITION)} in queues.yaml, then: make deploy"
            what = f"{sent:,.0f} jobs a second were sent to workers at most, and {partitions} {carried:,}"
            yield Finding(queue.name, what, do)


# Dead letters: how many there are in each dead-letter queue, and why, as far as that is known.
class _Kind(NamedTuple):
    """What one or many messages of a dead-letter queue are, the finding's fields, and what functions log of such."""

    code: str
    one: str
    many: str
    do: str
    logged: str = ""


_PARKED = _Kind(
    "parked_jobs",
    "job is parked: it can never be sent as it is",
    "jobs are parked: they can never be sent as they are",
    "fix the reason, then: dueline dead --parked --retry",
    logged="parked",
)
_OF_INBOUND = _Kind(
    "inbound_dead_letters",
    "message of the inbound queue is no job, or could not be stored for hours",
    "messages of the inbound queue are not jobs, or could not be stored for hours",
    "fix their sender; to see them: aws sqs receive-message",
    logged="rejected",
)
_OF_TICKS = _Kind(
    "failed_firings",
    "invocation of the tick function failed",
    "invocations of the tick function failed",
    "fix the findings about ticks; SQS deletes these messages by itself",
)
_OF_PLANNER = _Kind(
    "planner_dead_letters",
    "planning job failed for hours",
    "planning jobs failed for hours",
    "fix what the planner's log names; SQS deletes these messages within a day",
)


def _dead_letter_queues(observed: Observation) -> Iterator[tuple[str, str, _Kind]]:
    """Yield what each dead-letter queue is about, its name, and what its messages are."""
    names = observed.deployment.names
    for queue in observed.deployment.queues:
        do = f"fix the worker, then: dueline dead {queue.name} --retry"
        kind = _Kind("dead_letters", "job failed for good", "jobs failed for good", do)
        yield queue.name, names.queue_dlq(queue.name), kind
    own = (names.dispatch_dlq, names.inbound_dlq, names.tick_dlq, names.queue_dlq(PLANNER.name))
    for name, kind in zip(own, (_PARKED, _OF_INBOUND, _OF_TICKS, _OF_PLANNER), strict=True):
        yield name, name, kind


@rule("dead_letters", Severity.WARNING)
def dead_letters(observed: Observation) -> Iterator[Finding]:
    """Report dead-letter queues that are not empty, with reasons from the last hour's log."""
    for about, name, kind in _dead_letter_queues(observed):
        depth = observed.depths.get(name)
        if depth and (count := depth.waiting + depth.in_flight):
            what = _counted(count, kind.one, kind.many) + _reasons(observed, kind)
            yield Finding(about, what, kind.do, runbook(kind.code.replace("_", "-")), code=kind.code)


def _reasons(observed: Observation, kind: _Kind) -> str:
    counted = Counter[str]()
    for line in observed.logged:
        if line.message == kind.logged:
            counted[line.reason] += line.count
    reasons = "; ".join(f"{count:,} of {reason}" for reason, count in counted.most_common(_MOST_REASONS))
    return f" (of the last hour's log: {reasons})" if reasons else ""


@rule("queue_stopped", Severity.NOTE, page="docs/operations.md#pausing-a-queue-and-limiting-its-rate")
def queues_stopped(observed: Observation) -> Iterator[Finding]:
    for queue in observed.deployment.queues:
        depths = [observed.depths.get(name) for name in observed.deployment.levels(queue)]
        waiting, stopped = sum(depth.waiting for depth in depths if depth), _stopped(observed, queue.name)
        if waiting and stopped:
            do = f"when it is time: dueline resume {queue.name}, or dueline rate {queue.name} no-limit"
            yield Finding(queue.name, _counted(waiting, "job waits", "jobs wait") + stopped, do)


def _stopped(observed: Observation, queue: str) -> str:
    control = observed.controls.get(queue)
    if control is None or not control.is_stopped:
        return ""
    return ": it is paused" if control.paused else ": its rate is 0"


# Functions: those that do not run, fail, or are held up; the tables and the API.
@rule("function_stopped", Severity.CRITICAL)
def functions_stopped(observed: Observation) -> Iterator[Finding]:
    """Report functions that somebody stopped: by a reserved concurrency of 0, or by their event source mapping."""
    names = observed.deployment.names
    for function in FUNCTIONS:
        if observed.reserved.get(function) == 0:
            never = "its reserved concurrency is 0, so Lambda never runs it"
            yield Finding(names.function(function), never, _RUN_AGAIN, runbook("function-errors"))
    if observed.sources is None:
        return
    for function in SOURCES:
        states = observed.sources.get(function, ())
        if not states or any(state in ("Disabled", "Disabling") for state in states):
            what = f"its event source mapping is {'disabled' if states else 'missing'}, so it gets no message"
            yield Finding(names.function(function), what, _MAP, runbook(_WAITS_FOR[function]))


@rule("function_errors", Severity.WARNING, do="fix what its log names")
def functions_failing(observed: Observation) -> Iterator[Finding]:
    for function in FUNCTIONS:
        if count := observed.figure(function, "errors"):
            reasons = [
                line.reason for line in observed.logged if line.function == function and line.message == "failed"
            ]
            what = f"it failed {_times(count)} in the last hour{_list_reasons(reasons)}"
            yield Finding(observed.deployment.names.function(function), what)


@rule(
    "function_throttled",
    Severity.WARNING,
    page=runbook("function-errors"),
    do="raise the account's quota of concurrent executions, or the function's reserved concurrency",
)
def functions_throttled(observed: Observation) -> Iterator[Finding]:
    for function in FUNCTIONS:
        if count := observed.figure(function, "throttles"):
            what = f"Lambda throttled it {_times(count)} in the last hour: its concurrency was used up"
            yield Finding(observed.deployment.names.function(function), what)


@rule("logged", Severity.WARNING, do="fix that reason; the function retries the rest by itself")
def lines_of_trouble(observed: Observation) -> Iterator[Finding]:
    """Report what functions logged about being held up, the most frequent first."""
    for line in sorted(observed.logged, key=lambda line: -line.count):
        if line.message in PAGES_OF_LINES:
            about = line.queue or observed.deployment.names.function(line.function)
            what = f"the function {line.function} logged {line.message!r} {_times(line.count)}: {line.reason}"
            page = runbook(PAGES_OF_LINES[line.message])
            yield Finding(about, what, page=page, code=line.message.replace(" ", "_"))


@rule("api_faults", Severity.WARNING, do="fix what AWS refused; clients retry by themselves")
def api_faults(observed: Observation) -> Iterator[Finding]:
    names = observed.deployment.names
    if count := observed.figure(names.deployment, "api_faults"):
        reasons = [line.reason for line in observed.logged if line.message == "refused"]
        yield Finding(
            names.api, f"{_counted(count, 'request', 'requests')} of the last hour got a 503{_list_reasons(reasons)}"
        )


@rule(
    "schedules_stood_still",
    Severity.WARNING,
    page=runbook("schedules-stand-still"),
    do="fix what stopped them: it is in the planner's log",
)
def schedules_stood_still(observed: Observation) -> Iterator[Finding]:
    names = observed.deployment.names
    note = observed.notes.get("schedules")
    if note and note.count:
        schedules = _counted(note.count, "schedule", "schedules")
        yield Finding(names.function("planner"), f"the watchdog restarted {schedules}, which stood still")


def _list_reasons(reasons: list[str]) -> str:
    return f": {'; '.join(reasons[:_MOST_REASONS])}" if reasons else ""


@rule(
    "table_throttled",
    Severity.WARNING,
    page=runbook("inbound-backlog"),
    do="raise capacity in queues.yaml, or the partitions of the queue that writes most, then: make deploy",
)
def tables_throttled(observed: Observation) -> Iterator[Finding]:
    for table in (observed.deployment.names.table, observed.deployment.names.state):
        if count := observed.figure(table, "throttled"):
            yield Finding(table, f"DynamoDB refused {_counted(count, 'request', 'requests')} of the last hour")


# Alarms: those that ring, and those that nobody hears.
@rule("alarm", Severity.WARNING, page="docs/operations.md#alarms", do="follow its runbook")
def alarms_ringing(observed: Observation) -> Iterator[Finding]:
    for alarm in observed.alarms:
        if alarm.is_ringing:
            yield Finding(alarm.name, f"it is in ALARM: {alarm.description}", page=alarm.page or "")


@rule(
    "alarms_unheard",
    Severity.WARNING,
    page=guide("alarms-that-nobody-hears"),
    do="set alarm_email in queues.yaml, make deploy, and confirm the mail; or subscribe your pager",
)
def alarms_unheard(observed: Observation) -> Iterator[Finding]:
    if silent := [alarm.name for alarm in observed.alarms if not alarm.notifies]:
        yield Finding("alarms", f"these alarms notify no topic, or their actions are off: {named(silent)}")
    for topic, count in observed.subscribers.items():
        if not count:
            yield Finding(topic, "the alarms' topic has no confirmed subscriber: nobody is notified")


def _counted(count: float, one: str, many: str) -> str:
    return f"{count:,.0f} {one if count == 1 else many}"


def _times(count: float) -> str:
    return "once" if count == 1 else f"{count:,.0f} times"


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:,.0f} h"


def findings(observed: Observation) -> list[Finding]:
    """Return what is wrong, the worst first."""
    all_findings = (finding for rule in RULES for finding in rule(observed))
    return sorted(all_findings, key=lambda finding: [*Severity].index(finding.severity))
