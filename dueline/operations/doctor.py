"""The doctor: findings about functions, tables, the API, stacks, quotas and alarms, and all findings in their order."""

from collections import defaultdict
from collections.abc import Iterator

from dueline import __version__
from dueline.config.names import runbook
from dueline.core.message import check_deployment
from dueline.errors import DuelineError
from dueline.operations.backlog import PAGES_OF_LINES, SOURCES, named, throttled_tables
from dueline.operations.observation import FUNCTIONS, RULES, Finding, Observation, Severity, Symptom, guide, rule

_NEAR = 0.8
_RAISE = "request a higher quota in Service Quotas"
_NONE = "before 0.1"
_MOST_REASONS = 3
_RUN_AGAIN = "remove it: aws lambda delete-function-concurrency --function-name NAME"
_MAP = "enable it: aws lambda update-event-source-mapping --enabled, or create it as the core stack's template has it"
_WAITS_FOR = {"ingest": "inbound-backlog", "planner": "schedules-stand-still"}


@rule("function_stopped", Severity.CRITICAL)
def functions_stopped(observed: Observation) -> Iterator[Symptom]:
    """Report functions that somebody stopped: by a reserved concurrency of 0, or by their event source mapping."""
    names = observed.deployment.names
    for function in FUNCTIONS:
        if (observed.reserved or {}).get(function) == 0:
            never = "its reserved concurrency is 0, so Lambda never runs it"
            yield Symptom(names.function(function), never, _RUN_AGAIN, runbook("function-errors"))
    for function in SOURCES if observed.sources is not None else ():
        states = (observed.sources or {}).get(function, ())
        if not states or any(state in ("Disabled", "Disabling") for state in states):
            what = f"its event source mapping is {'disabled' if states else 'missing'}, so it gets no message"
            yield Symptom(names.function(function), what, _MAP, runbook(_WAITS_FOR[function]))


@rule("function_errors", Severity.WARNING, do="fix what its log names")
def functions_failing(observed: Observation) -> Iterator[Symptom]:
    for function in FUNCTIONS:
        if count := observed.figure(function, "errors"):
            reasons = [
                line.reason for line in observed.logged if line.function == function and line.message == "failed"
            ]
            what = f"it failed {count:,.0f} times in the last hour{_list_reasons(reasons)}"
            yield Symptom(observed.deployment.names.function(function), what)


@rule("log_gone", Severity.WARNING, page=guide("logs-that-are-gone"))
def logs_gone(observed: Observation) -> Iterator[Symptom]:
    """Report functions without a log group, which their metrics go through."""
    names = observed.deployment.names
    what = "its log group does not exist, so it logs nothing and reports no metric, such as lateness"
    for function in observed.logs_gone:
        do = f"aws logs create-log-group --log-group-name {names.function_log(function)}"
        yield Symptom(names.function(function), what, do)


@rule(
    "function_throttled",
    Severity.WARNING,
    page=runbook("function-errors"),
    do="raise the account's quota of concurrent executions, or the function's reserved concurrency",
)
def functions_throttled(observed: Observation) -> Iterator[Symptom]:
    for function in FUNCTIONS:
        if count := observed.figure(function, "throttles"):
            what = f"Lambda throttled it {count:,.0f} times in the last hour: its concurrency was used up"
            yield Symptom(observed.deployment.names.function(function), what)


@rule("logged", Severity.WARNING, do="fix that reason; the function retries the rest by itself")
def lines_of_trouble(observed: Observation) -> Iterator[Symptom]:
    """Report what functions logged about being held up, the most frequent first."""
    for line in sorted(observed.logged, key=lambda line: -line.count):
        if line.message in PAGES_OF_LINES:
            times = "once" if line.count == 1 else f"{line.count:,} times"
            about = line.queue or observed.deployment.names.function(line.function)
            what = f"the function {line.function} logged {line.message!r} {times}: {line.reason}"
            page = runbook(PAGES_OF_LINES[line.message])
            yield Symptom(about, what, page=page, code=line.message.replace(" ", "_"))


@rule("api_faults", Severity.WARNING, do="fix what AWS refused; clients retry by themselves")
def api_faults(observed: Observation) -> Iterator[Symptom]:
    names = observed.deployment.names
    if count := observed.figure(names.deployment, "api_faults"):
        reasons = [line.reason for line in observed.logged if line.message == "refused"]
        yield Symptom(names.api, f"{count:,.0f} requests of the last hour were answered 503{_list_reasons(reasons)}")


@rule("api_5xx", Severity.WARNING, page=runbook("api-faults"))
def api_unreached(observed: Observation) -> Iterator[Symptom]:
    """Report answers of 5xx that the function did not give, as where API Gateway may not invoke it."""
    names, name = observed.deployment.names, observed.deployment.names.deployment
    reported = ((name, "api_faults"), ("api", "errors"), ("api", "throttles"))
    if (count := observed.figure(name, "api_5xx")) and not any(observed.figure(*each) for each in reported):
        what = f"{count:,.0f} requests of the last hour were answered 5xx without a fault of its function"
        do = f"read integrationErrorMessage in the log {names.access_log}; without one, wait"
        yield Symptom(names.api, f"{what}: it was not reached, or answered 503 not_yet", do)


@rule(
    "schedules_stood_still",
    Severity.WARNING,
    page=runbook("schedules-stand-still"),
    do="fix what stopped them: it is in the planner's log",
)
def schedules_stood_still(observed: Observation) -> Iterator[Symptom]:
    names = observed.deployment.names
    note = (observed.notes or {}).get("schedules")
    if note and note.count:
        yield Symptom(names.function("planner"), f"{note.count:,} schedules stood still; the watchdog restarted them")


def _list_reasons(reasons: list[str]) -> str:
    return f": {'; '.join(reasons[:_MOST_REASONS])}" if reasons else ""


@rule(
    "table_throttled",
    Severity.WARNING,
    page=runbook("inbound-backlog"),
    do="raise capacity in queues.yaml, or the partitions of the queue that writes most, then: make deploy",
)
def tables_throttled(observed: Observation) -> Iterator[Symptom]:
    for table, count in throttled_tables(observed):
        yield Symptom(table, f"DynamoDB refused {count:,.0f} requests of the last hour")


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


@rule(
    "client_differs",
    Severity.WARNING,
    page=guide("clients-of-another-version"),
    do="deploy this version (make deploy), or install the deployed one: pip install dueline==VERSION",
)
def clients_differ(observed: Observation) -> Iterator[Symptom]:
    """Report that the deployment refuses direct clients of this version, or is of another version."""
    deployment = observed.deployment
    name, version = deployment.names.deployment, deployment.version
    try:
        check_deployment(name, latest=deployment.schema, oldest=deployment.oldest_schema)
    except DuelineError as refusal:
        yield Symptom(name, str(refusal))
    else:
        if version not in (None, __version__):
            what = f"it is of version {version}, and this library is {__version__}"
            yield Symptom(name, what, severity=Severity.NOTE)


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


def findings(observed: Observation) -> list[Finding]:
    """Return what is wrong, the worst first."""
    all_findings = (finding for rule in RULES for finding in rule(observed))
    return sorted(all_findings, key=lambda finding: [*Severity].index(finding.severity))
