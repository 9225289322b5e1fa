"""Findings about functions: errors, throttles, and what they logged."""

from collections.abc import Iterator

from dueline.config.names import runbook
from dueline.operations.observation import FUNCTIONS, Finding, LogLine, Observation, Severity, guide

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


def functions_stopped(observed: Observation) -> Iterator[Finding]:
    """Report functions that somebody stopped: by a reserved concurrency of 0, or by their event source mapping."""
    for function in FUNCTIONS:
        if (observed.reserved or {}).get(function) == 0:
            yield _stopped(observed, function, "its reserved concurrency is 0, so Lambda never runs it", do=_RUN_AGAIN)
    for function in SOURCES if observed.sources is not None else ():
        states = (observed.sources or {}).get(function, ())
        if not states or any(state in ("Disabled", "Disabling") for state in states):
            state = "disabled" if states else "missing"
            yield _stopped(observed, function, f"its event source mapping is {state}, so it gets no message", do=_MAP)


def _stopped(observed: Observation, function: str, what: str, *, do: str) -> Finding:
    return Finding(
        code="function_stopped",
        severity=Severity.CRITICAL,
        about=observed.deployment.names.function(function),
        what=what,
        do=do,
        page=runbook("function-throttled" if "concurrency" in what else _WAITS_FOR[function]),
    )


_WAITS_FOR = {"ingest": "inbound-backlog", "planner": "schedules-stand-still"}


def functions_failing(observed: Observation) -> Iterator[Finding]:
    """Report functions that failed, with what they logged."""
    for function in FUNCTIONS:
        if count := observed.figure(function, "errors"):
            reasons = [
                line.reason for line in observed.logged if line.function == function and line.message == "failed"
            ]
            yield Finding(
                code="function_errors",
                severity=Severity.WARNING,
                about=observed.deployment.names.function(function),
                what=f"it failed {count:,.0f} times in the last hour{_list_reasons(reasons)}",
                do="fix what its log names",
                page=runbook("function-errors"),
            )


def logs_gone(observed: Observation) -> Iterator[Finding]:
    """Report functions without a log group, which their metrics go through."""
    for function in observed.logs_gone:
        yield Finding(
            code="log_gone",
            severity=Severity.WARNING,
            about=observed.deployment.names.function(function),
            what="its log group does not exist, so it logs nothing and reports no metric, such as lateness",
            do=f"aws logs create-log-group --log-group-name {observed.deployment.names.function_log(function)}",
            page=guide("logs-that-are-gone"),
        )


def functions_throttled(observed: Observation) -> Iterator[Finding]:
    """Report functions that Lambda throttled."""
    for function in FUNCTIONS:
        if count := observed.figure(function, "throttles"):
            yield Finding(
                code="function_throttled",
                severity=Severity.WARNING,
                about=observed.deployment.names.function(function),
                what=f"Lambda throttled it {count:,.0f} times in the last hour: its concurrency was used up",
                do="raise the account's quota of concurrent executions, or the function's reserved concurrency",
                page=runbook("function-throttled"),
            )


def lines_of_trouble(observed: Observation) -> Iterator[Finding]:
    """Report what functions logged about being held up, the most frequent first."""
    for line in sorted(observed.logged, key=lambda line: -line.count):
        if line.message in PAGES_OF_LINES:
            yield Finding(
                code=line.message.replace(" ", "_"),
                severity=Severity.WARNING,
                about=line.queue or observed.deployment.names.function(line.function),
                what=f"the function {line.function} logged {line.message!r} {_times(line)}: {line.reason}",
                do="fix that reason; the function retries the rest by itself",
                page=runbook(PAGES_OF_LINES[line.message]),
            )


def api_faults(observed: Observation) -> Iterator[Finding]:
    """Report API requests that failed because AWS did."""
    if count := observed.figure(observed.deployment.names.deployment, "api_faults"):
        reasons = [line.reason for line in observed.logged if line.message == "refused"]
        yield Finding(
            code="api_faults",
            severity=Severity.WARNING,
            about=observed.deployment.names.api,
            what=f"{count:,.0f} requests of the last hour were answered 503{_list_reasons(reasons)}",
            do="fix what AWS refused; clients retry by themselves",
            page=runbook("api-faults"),
        )


def api_unreached(observed: Observation) -> Iterator[Finding]:
    """Report answers of 5xx that the function did not give, as where API Gateway may not invoke it."""
    name = observed.deployment.names.deployment
    is_reported = (
        observed.figure(name, "api_faults") or observed.figure("api", "errors") or observed.figure("api", "throttles")
    )
    if (count := observed.figure(name, "api_5xx")) and not is_reported:
        yield Finding(
            code="api_5xx",
            severity=Severity.WARNING,
            about=observed.deployment.names.api,
            what=f"{count:,.0f} requests of the last hour were answered 5xx without a fault of its function: it was"
            " not reached, or answered 503 not_yet",
            do=f"read integrationErrorMessage in the log {observed.deployment.names.access_log}; without one, wait",
            page=runbook("api-faults"),
        )


def schedules_stood_still(observed: Observation) -> Iterator[Finding]:
    """Report schedules whose runs were not planned."""
    if count := observed.figure(observed.deployment.names.deployment, "standing_still"):
        yield Finding(
            code="schedules_stood_still",
            severity=Severity.WARNING,
            about=observed.deployment.names.function("planner"),
            what=f"{count:,.0f} schedules stood still; the watchdog restarted them",
            do="fix what stopped them: it is in the planner's log",
            page=runbook("schedules-stand-still"),
        )


def _times(line: LogLine) -> str:
    return "once" if line.count == 1 else f"{line.count:,} times"


def _list_reasons(reasons: list[str]) -> str:
    return f": {'; '.join(reasons[:_MOST_REASONS])}" if reasons else ""
