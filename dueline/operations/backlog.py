"""Findings about late and waiting jobs, with what causes them."""

from collections.abc import Iterator
from datetime import timedelta

from dueline.config.names import runbook
from dueline.operations.doctor_functions import PAGES_OF_LINES, SOURCES
from dueline.operations.observation import Observation, Severity, Symptom, guide, rule

# Those at which the alarms ring.
LATE_SECONDS = 60
INBOUND_SECONDS = 300
_ON_TIME_PERCENT = 99.9
# Of the time for which SQS keeps a message.
_LONG_KEPT = 0.5


@rule("late_jobs", Severity.CRITICAL, do="fix the cause: its ticks then catch up by themselves")
def late_jobs(observed: Observation) -> Iterator[Symptom]:
    for queue in observed.deployment.ticking():
        seconds = observed.figure(queue.name, "lateness")
        if seconds >= LATE_SECONDS:
            late = f"its oldest job not sent to workers is {seconds:,.0f} s late"
            yield Symptom(queue.name, f"{late}{_because(observed, 'tick')}")


@rule(
    "jobs_not_on_time",
    Severity.WARNING,
    do="fix the other findings about this queue; without any, callers scheduled these jobs late",
)
def delayed_jobs(observed: Observation) -> Iterator[Symptom]:
    """Report queues of whose jobs over one in a thousand were over a minute late in the last hour."""
    for queue in observed.deployment.queues:
        on_time, delayed = (observed.figure(queue.name, each) for each in ("on_time", "delayed"))
        share = 100 * on_time / (on_time + delayed) if delayed else 100.0
        if share < _ON_TIME_PERCENT:
            on_time_share = f"{share:.1f} % of its jobs of the last hour were on time"
            yield Symptom(queue.name, f"{on_time_share}, {delayed:,.0f} were not")


@rule(
    "inbound_backlog",
    Severity.CRITICAL,
    do="fix the cause; without one, raise ingest_max_concurrency in queues.yaml, then: make deploy",
)
def inbound_backlog(observed: Observation) -> Iterator[Symptom]:
    inbound = observed.deployment.names.inbound
    depth = (observed.depths or {}).get(inbound)
    waiting = depth.waiting if depth else 0
    seconds, because = observed.figure(inbound, "age"), _because(observed, "ingest")
    if seconds >= INBOUND_SECONDS or (waiting and because):
        yield Symptom(inbound, f"{waiting:,} messages wait for ingest, the oldest for {seconds:,.0f} s{because}")


def _because(observed: Observation, function: str) -> str:
    """Return what holds a function up, as the end of a sentence, or nothing."""
    causes = list(_causes(observed, function))
    return f", because {'; '.join(causes)}" if causes else ""


def _causes(observed: Observation, function: str) -> Iterator[str]:
    for table, throttled in _throttled_tables(observed):
        yield f"the table {table} refused {throttled:,.0f} requests"
    if (observed.reserved or {}).get(function) == 0:
        yield f"the function {function} may not run: its reserved concurrency is 0"
    for what, outcome in (("errors", "failed"), ("throttles", "was throttled by Lambda")):
        if count := observed.figure(function, what):
            yield f"the function {function} {outcome} {count:,.0f} times"
    sources = (observed.sources or {}).get(function, ()) if function in SOURCES else ()
    if any(state not in ("Enabled", "Enabling", "Creating") for state in sources):
        yield f"the event source mapping of {function} is disabled"
    for line in observed.logged:
        if line.function == function and line.message in PAGES_OF_LINES:
            yield f"it {line.message}: {line.reason}"


def _throttled_tables(observed: Observation) -> Iterator[tuple[str, float]]:
    """Yield the tables that DynamoDB throttled, and how many requests it refused."""
    names = observed.deployment.names
    for table in (names.table, names.state):
        if count := observed.figure(table, "throttled"):
            yield table, count


@rule(
    "table_throttled",
    Severity.WARNING,
    page=runbook("inbound-backlog"),
    do="raise capacity in queues.yaml, or the partitions of the queue that writes most, then: make deploy",
)
def tables_throttled(observed: Observation) -> Iterator[Symptom]:
    for table, count in _throttled_tables(observed):
        yield Symptom(table, f"DynamoDB refused {count:,.0f} requests of the last hour")


@rule(
    "queue_gone",
    Severity.CRITICAL,
    page=guide("queues-that-are-gone"),
    do="create it again as its stack's template has it, then: dueline redrive --parked --apply",
)
def queues_gone(observed: Observation) -> Iterator[Symptom]:
    for name, depth in (observed.depths or {}).items():
        if depth is None:
            yield Symptom(name, "this SQS queue does not exist: its jobs are parked or refused")


@rule(
    "queue_left",
    Severity.WARNING,
    page=guide("queues-that-were-given-up"),
    do="deploy the queue or priority again until it is empty, then delete it: aws sqs delete-queue",
)
def queues_left(observed: Observation) -> Iterator[Symptom]:
    """Report SQS queues with messages whose queue or priority was removed: workers do not read them."""
    for name, depth in sorted((observed.left or {}).items()):
        if count := depth.waiting + depth.in_flight:
            what = f"{count:,} messages are in this SQS queue, whose queue or priority is not deployed any more"
            lost = f"no worker receives them, and SQS deletes each after {_hours(depth.retention)}"
            yield Symptom(name, f"{what}: {lost}")


@rule(
    "messages_kept_long",
    Severity.CRITICAL,
    page="docs/doctor.md#workers-that-do-not-keep-up",
    do="run workers: SQS deletes such messages without a dead letter",
)
def messages_kept_long(observed: Observation) -> Iterator[Symptom]:
    """Report queues whose messages SQS will soon delete, because no worker receives them."""
    for queue in observed.deployment.queues:
        for name in observed.deployment.levels(queue):
            depth, age = (observed.depths or {}).get(name), timedelta(seconds=observed.figure(name, "age"))
            if depth and age >= _LONG_KEPT * depth.retention:
                waited = f"a message of {name} has waited for {_hours(age)}, and SQS deletes it after"
                yield Symptom(queue.name, f"{waited} {_hours(depth.retention)}{_stopped(observed, queue.name)}")


@rule(
    "not_received",
    Severity.WARNING,
    page=guide("queues-without-a-worker"),
    do="run a worker of this queue (dueline worker MODULE:NAME); if one runs, its log says what is wrong",
)
def messages_not_received(observed: Observation) -> Iterator[Symptom]:
    """Report queues where jobs wait and none is in flight, unless the oldest came in the last minute.

    Not of queues with a rate, where that is normal for a moment, nor of what `messages_kept_long` reports.
    """
    reported = {finding.about for finding in messages_kept_long(observed)}
    for queue in observed.deployment.queues:
        names, control = observed.deployment.levels(queue), (observed.controls or {}).get(queue.name)
        depths = [depth for name in names if (depth := (observed.depths or {}).get(name))]
        waiting, in_flight = sum(depth.waiting for depth in depths), sum(depth.in_flight for depth in depths)
        is_limited = control is not None and (control.paused or control.rate is not None)
        if not waiting or in_flight or is_limited or queue.name in reported:
            continue
        age = max((observed.figures[name, "age"] for name in names if (name, "age") in observed.figures), default=None)
        if age is None or age >= LATE_SECONDS:
            since = "since when is not known" if age is None else f"the oldest for {age:,.0f} s"
            jobs = "1 job waits" if waiting == 1 else f"{waiting:,} jobs wait"
            yield Symptom(queue.name, f"about {jobs}, {since}, and none is being processed: is a worker running?")


@rule("queue_stopped", Severity.NOTE, page="docs/operations.md#pausing-a-queue-and-limiting-its-rate")
def queues_stopped(observed: Observation) -> Iterator[Symptom]:
    for queue in observed.deployment.queues:
        depths = [(observed.depths or {}).get(name) for name in observed.deployment.levels(queue)]
        waiting, stopped = sum(depth.waiting for depth in depths if depth), _stopped(observed, queue.name)
        if waiting and stopped:
            do = f"when it is time: dueline resume {queue.name}, or dueline rate {queue.name} no-limit"
            yield Symptom(queue.name, f"{waiting:,} jobs wait{stopped}", do)


def _stopped(observed: Observation, queue: str) -> str:
    control = (observed.controls or {}).get(queue)
    if control is None or not control.is_stopped:
        return ""
    return ": it is paused" if control.paused else ": its rate is 0"


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:,.0f} h"
