"""Findings about functions: errors, throttles, and what they logged."""

from collections.abc import Iterator

from dueline.config.names import runbook
from dueline.operations.observation import FUNCTIONS, Finding, Observation, Severity, Symptom, guide, rule

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


def lines_of_trouble(observed: Observation) -> Iterator[Finding]:
    """Report what functions logged about being held up, the most frequent first."""
    for line in sorted(observed.logged, key=lambda line: -line.count):
        if line.message in PAGES_OF_LINES:
            times = "once" if line.count == 1 else f"{line.count:,} times"
            yield Finding(
                code=line.message.replace(" ", "_"),
                severity=Severity.WARNING,
                about=line.queue or observed.deployment.names.function(line.function),
                what=f"the function {line.function} logged {line.message!r} {times}: {line.reason}",
                do="fix that reason; the function retries the rest by itself",
                page=runbook(PAGES_OF_LINES[line.message]),
            )


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
