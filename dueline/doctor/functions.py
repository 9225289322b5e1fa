"""Functions: those that fail, that Lambda does not run, and what they logged of it."""

from collections.abc import Iterator

from dueline.config.runbooks import runbook
from dueline.doctor.finding import Finding, Severity, guide
from dueline.doctor.seen import FUNCTIONS, LogLine, Seen

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


def functions_stopped(seen: Seen) -> Iterator[Finding]:
    """Name functions that somebody stopped: by a reserved concurrency of 0, or by their event source mapping."""
    for function in FUNCTIONS:
        if (seen.reserved or {}).get(function) == 0:
            yield _stopped(seen, function, "its reserved concurrency is 0, so Lambda never runs it", do="remove that")
    for function in SOURCES if seen.sources is not None else ():
        states = (seen.sources or {}).get(function, ())
        if not states or any(state in ("Disabled", "Disabling") for state in states):
            told = "disabled" if states else "not there"
            yield _stopped(seen, function, f"its event source mapping is {told}, so it gets no message", do="enable it")


def _stopped(seen: Seen, function: str, what: str, *, do: str) -> Finding:
    return Finding(
        code="function_stopped",
        severity=Severity.CRITICAL,
        about=seen.deployment.names.function(function),
        what=what,
        do=do,
        page=runbook("function-throttled" if "concurrency" in what else _WAITS_FOR[function]),
    )


_WAITS_FOR = {"ingest": "inbound-backlog", "planner": "schedules-stand-still"}


def functions_failing(seen: Seen) -> Iterator[Finding]:
    """Name functions that failed as a whole, with what they logged of it."""
    for function in FUNCTIONS:
        if count := seen.figure(function, "errors"):
            reasons = [line.reason for line in seen.logged if line.function == function and line.message == "failed"]
            yield Finding(
                code="function_errors",
                severity=Severity.WARNING,
                about=seen.deployment.names.function(function),
                what=f"it failed {count:,.0f} times in the last hour{_told(reasons)}",
                do="remove what its log names",
                page=runbook("function-errors"),
            )


def logs_gone(seen: Seen) -> Iterator[Finding]:
    """Name functions without a log group: of what they report, which goes through it, nothing is known."""
    for function in seen.logs_gone:
        yield Finding(
            code="log_gone",
            severity=Severity.WARNING,
            about=seen.deployment.names.function(function),
            what="its log group is not there, so it logs nothing and measures nothing, such as how late jobs are",
            do=f"make {seen.deployment.names.function_log(function)} again, as the core stack's template has it",
            page=guide("logs-that-are-gone"),
        )


def functions_throttled(seen: Seen) -> Iterator[Finding]:
    """Name functions that Lambda did not run."""
    for function in FUNCTIONS:
        if count := seen.figure(function, "throttles"):
            yield Finding(
                code="function_throttled",
                severity=Severity.WARNING,
                about=seen.deployment.names.function(function),
                what=f"Lambda did not run it {count:,.0f} times in the last hour: as many run at once as may",
                do="raise the account's concurrent executions, or the function's own",
                page=runbook("function-throttled"),
            )


def lines_of_trouble(seen: Seen) -> Iterator[Finding]:
    """Tell what functions logged of what held them up, the most frequent first."""
    for line in sorted(seen.logged, key=lambda line: -line.count):
        if line.message in PAGES_OF_LINES:
            yield Finding(
                code=line.message.replace(" ", "_"),
                severity=Severity.WARNING,
                about=line.queue or seen.deployment.names.function(line.function),
                what=f"the function {line.function} logged {line.message!r} {_times(line)}: {line.reason}",
                do="remove that reason; what was left is done again by itself",
                page=runbook(PAGES_OF_LINES[line.message]),
            )


def api_faults(seen: Seen) -> Iterator[Finding]:
    """Tell of requests that AWS failed."""
    if count := seen.figure(seen.deployment.names.deployment, "api_faults"):
        reasons = [line.reason for line in seen.logged if line.message == "refused"]
        yield Finding(
            code="api_faults",
            severity=Severity.WARNING,
            about=seen.deployment.names.api,
            what=f"{count:,.0f} requests of the last hour were answered 503{_told(reasons)}",
            do="see what AWS refused: callers try again by themselves",
            page=runbook("api-faults"),
        )


def api_unreached(seen: Seen) -> Iterator[Finding]:
    """Tell of answers of 5xx that the function knows nothing of, as where API Gateway may not invoke it."""
    name = seen.deployment.names.deployment
    told = seen.figure(name, "api_faults") or seen.figure("api", "errors") or seen.figure("api", "throttles")
    if (count := seen.figure(name, "api_5xx")) and not told:
        yield Finding(
            code="api_5xx",
            severity=Severity.WARNING,
            about=seen.deployment.names.api,
            what=f"{count:,.0f} requests of the last hour were answered 5xx, and its function told of no fault: it was"
            " not reached, or what was asked cannot be done yet (not_yet)",
            do=f"see integrationErrorMessage in the log {seen.deployment.names.access_log}; if it has none, wait",
            page=runbook("api-faults"),
        )


def schedules_stood_still(seen: Seen) -> Iterator[Finding]:
    """Tell of schedules whose runs were not planned."""
    if count := seen.figure(seen.deployment.names.deployment, "standing_still"):
        yield Finding(
            code="schedules_stood_still",
            severity=Severity.WARNING,
            about=seen.deployment.names.function("planner"),
            what=f"{count:,.0f} schedules stood still; its watch set them going again",
            do="remove what stopped them: it is in the planner's log",
            page=runbook("schedules-stand-still"),
        )


def _times(line: LogLine) -> str:
    return "once" if line.count == 1 else f"{line.count:,} times"


def _told(reasons: list[str]) -> str:
    return f": {'; '.join(reasons[:_MOST_REASONS])}" if reasons else ""
