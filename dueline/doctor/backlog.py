"""Backlog: what is late or waits for long, and what holds it up."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from dueline.config.runbooks import runbook
from dueline.doctor.finding import Finding, Severity, guide
from dueline.doctor.functions import PAGES_OF_LINES, SOURCES
from dueline.doctor.seen import Seen

# Those at which the alarms ring.
LATE_SECONDS = 60
INBOUND_SECONDS = 300
_ON_TIME_PERCENT = 99.9
# Of the time for which SQS keeps a message.
_LONG_KEPT = 0.5


def late_jobs(seen: Seen) -> Iterator[Finding]:
    """Name queues whose jobs are past due and not handed over."""
    for queue in seen.deployment.ticking():
        seconds = seen.figure(queue.name, "lateness")
        if seconds >= LATE_SECONDS:
            yield Finding(
                code="late_jobs",
                severity=Severity.CRITICAL,
                about=queue.name,
                what=f"its oldest job that was not handed over is {seconds:,.0f} s late{_because(seen, 'tick')}",
                do="remove the cause: its ticks then catch up by themselves",
                page=runbook("late-jobs"),
            )


def delayed_jobs(seen: Seen) -> Iterator[Finding]:
    """Name queues of whose jobs over one in a thousand were over a minute late in the last hour."""
    for queue in seen.deployment.queues:
        on_time, delayed = (seen.figure(queue.name, each) for each in ("on_time", "delayed"))
        share = 100 * on_time / (on_time + delayed) if delayed else 100.0
        if share < _ON_TIME_PERCENT:
            yield Finding(
                code="jobs_not_on_time",
                severity=Severity.WARNING,
                about=queue.name,
                what=f"{share:.1f} % of its jobs of the last hour were on time, {delayed:,.0f} were not",
                do="see what else is found of this queue; if nothing is, they were late when they came",
                page=runbook("jobs-not-on-time"),
            )


def inbound_backlog(seen: Seen) -> Iterator[Finding]:
    """Tell of jobs that wait for ingest."""
    inbound = seen.deployment.names.inbound
    depth = (seen.depths or {}).get(inbound)
    waiting = depth.waiting if depth else 0
    seconds, because = seen.figure(inbound, "age"), _because(seen, "ingest")
    if seconds < INBOUND_SECONDS and not (waiting and because):
        return
    yield Finding(
        code="inbound_backlog",
        severity=Severity.CRITICAL,
        about=inbound,
        what=f"{waiting:,} messages wait for ingest, the oldest for {seconds:,.0f} s{because}",
        do="remove the cause; if there is none, raise ingest_max_concurrency",
        page=runbook("inbound-backlog"),
    )


def _because(seen: Seen, function: str) -> str:
    """Return what holds a function up, as the end of a sentence, or nothing."""
    causes = list(_causes(seen, function))
    return f", because {'; '.join(causes)}" if causes else ""


def _causes(seen: Seen, function: str) -> Iterator[str]:
    for table, throttled in throttled_tables(seen):
        yield f"the table {table} refused {throttled:,.0f} requests"
    if (seen.reserved or {}).get(function) == 0:
        yield f"the function {function} may not run: its reserved concurrency is 0"
    for what, told in (("errors", "failed"), ("throttles", "was not run for want of concurrency")):
        if count := seen.figure(function, what):
            yield f"the function {function} {told} {count:,.0f} times"
    if any(state not in ("Enabled", "Enabling", "Creating") for state in _source(seen, function)):
        yield f"the event source mapping of {function} is off"
    for line in seen.logged:
        if line.function == function and line.message in PAGES_OF_LINES:
            yield f"it {line.message}: {line.reason}"


def _source(seen: Seen, function: str) -> Sequence[str]:
    return (seen.sources or {}).get(function, ()) if function in SOURCES else ()


def throttled_tables(seen: Seen) -> Iterator[tuple[str, float]]:
    """Yield the tables that DynamoDB throttled, and how many requests it refused."""
    names = seen.deployment.names
    for table in (names.table, names.state):
        if count := seen.figure(table, "throttled"):
            yield table, count


def tables_throttled(seen: Seen) -> Iterator[Finding]:
    """Name the tables that throttle."""
    for table, count in throttled_tables(seen):
        yield Finding(
            code="table_throttled",
            severity=Severity.WARNING,
            about=table,
            what=f"DynamoDB refused {count:,.0f} requests of the last hour",
            do="raise capacity in queues.yaml, or the partitions of the queue that writes most, and deploy",
            page=runbook("inbound-backlog"),
        )


def queues_gone(seen: Seen) -> Iterator[Finding]:
    """Name SQS queues of the deployment that are not there."""
    for name, depth in (seen.depths or {}).items():
        if depth is None:
            yield Finding(
                code="queue_gone",
                severity=Severity.CRITICAL,
                about=name,
                what="this SQS queue is not there: what is for it is parked, or refused",
                do="make it again under its name, as its stack's template has it, and put back what was parked",
                page=guide("queues-that-are-gone"),
            )


def queues_left(seen: Seen) -> Iterator[Finding]:
    """Name SQS queues that hold messages and are of no queue or level that is deployed: workers do not read them."""
    for name, depth in sorted((seen.left or {}).items()):
        if count := depth.waiting + depth.in_flight:
            yield Finding(
                code="queue_left",
                severity=Severity.WARNING,
                about=name,
                what=f"{count:,} messages are in this SQS queue, which is of no queue or level that is deployed: no"
                f" worker of the library takes them, and SQS deletes each after {_hours(depth.retention)}",
                do="bring the queue or level back, or take from it what is wanted; then delete it",
                page=guide("queues-that-were-given-up"),
            )


def messages_kept_long(seen: Seen) -> Iterator[Finding]:
    """Name queues whose messages SQS will soon delete, because no worker takes them."""
    for queue in seen.deployment.queues:
        for level in range(1, queue.settings.priorities + 1):
            name = seen.deployment.names.queue(queue.name, level)
            depth, age = (seen.depths or {}).get(name), timedelta(seconds=seen.figure(name, "age"))
            if depth and age >= _LONG_KEPT * depth.retention:
                yield Finding(
                    code="messages_kept_long",
                    severity=Severity.CRITICAL,
                    about=queue.name,
                    what=f"a message of {name} waits for {_hours(age)}, and SQS deletes it after"
                    f" {_hours(depth.retention)}{_stopped(seen, queue.name)}",
                    do="let workers run: SQS deletes such messages without a dead letter",
                    page="docs/doctor.md#workers-that-do-not-keep-up",
                )


def queues_stopped(seen: Seen) -> Iterator[Finding]:
    """Name queues in which jobs wait because somebody paused them."""
    for queue in seen.deployment.queues:
        levels = range(1, queue.settings.priorities + 1)
        depths = [(seen.depths or {}).get(seen.deployment.names.queue(queue.name, level)) for level in levels]
        waiting = sum(depth.waiting for depth in depths if depth)
        if waiting and _stopped(seen, queue.name):
            yield Finding(
                code="queue_stopped",
                severity=Severity.NOTE,
                about=queue.name,
                what=f"{waiting:,} jobs wait in it{_stopped(seen, queue.name)}",
                do=f"when it is time: dueline resume {queue.name}, or dueline rate {queue.name} none",
                page="docs/operations.md#pausing-a-queue-and-limiting-its-rate",
            )


def _stopped(seen: Seen, queue: str) -> str:
    control = (seen.controls or {}).get(queue)
    if control is None or not control.is_stopped:
        return ""
    return ": it is paused" if control.paused else ": its rate is 0"


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:,.0f} h"
