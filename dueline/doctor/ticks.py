"""Ticks: schedules that are missing or disabled, fences that stand still, partitions that are too few."""

from collections.abc import Iterator, Sequence

from dueline.config.runbooks import runbook
from dueline.doctor.finding import Finding, Severity, guide
from dueline.doctor.seen import DeployedQueue, Seen
from dueline.model import instant
from dueline.model.queue_settings import JOBS_PER_PARTITION

ENABLED = "ENABLED"
_MOST_NAMED = 10


def schedules_missing(seen: Seen) -> Iterator[Finding]:
    """Name partitions whose ticks nothing fires: the schedule is not there."""
    for queue in seen.deployment.ticking() if seen.schedules is not None else ():
        there = seen.schedules or {}
        names = [seen.deployment.names.schedule(queue.name, number) for number in range(queue.partitions)]
        if missing := [name for name in names if name not in there]:
            yield _of_ticks(queue.name, seen, missing, code="tick_missing", state="are not there", do="make them again")


def schedules_disabled(seen: Seen) -> Iterator[Finding]:
    """Name schedules that are there and do not fire, those of partitions and queues that were given up among them."""
    off: dict[str, list[str]] = {}
    for name, state in (seen.schedules or {}).items():
        if state != ENABLED:
            off.setdefault(name.rpartition(".")[0], []).append(name)
    for queue, names in off.items():
        yield _of_ticks(queue, seen, names, code="tick_disabled", state="are disabled", do="enable them")


def _of_ticks(queue: str, seen: Seen, names: Sequence[str], *, code: str, state: str, do: str) -> Finding:
    group = seen.deployment.names.schedule_group
    return Finding(
        code=code,
        severity=Severity.CRITICAL,
        about=queue,
        what=f"tick schedules {state}: {named(names)} of the group {group}; their jobs are not handed over",
        do=f"{do}: ticks then catch up by themselves",
        page=runbook("partitions-without-tick"),
    )


def watches_off(seen: Seen) -> Iterator[Finding]:
    """Name the schedules of watches that do not fire: nobody looks for what stands still."""
    names = seen.deployment.names
    for name in (names.watch, names.planner_watch) if seen.watches is not None else ():
        state = (seen.watches or {}).get(name)
        if state != ENABLED:
            yield Finding(
                code="watch_off",
                severity=Severity.WARNING,
                about=name,
                what=f"the schedule of a watch is {'not there' if state is None else 'disabled'}",
                do="enable it, or deploy the core stack",
                page=runbook("partitions-without-tick" if name == names.watch else "schedules-stand-still"),
            )


def fences_still(seen: Seen) -> Iterator[Finding]:
    """Name partitions that no tick reads: their fence lies in the past, or there is none."""
    now = instant.text(seen.now)
    for queue in seen.deployment.ticking() if seen.fences is not None else ():
        fences = {each: (seen.fences or {}).get(each, "") for each in queue.all_partitions()}
        if still := {str(each): fence for each, fence in fences.items() if fence < now}:
            oldest = min(still.values())
            since = f"their fences stand at {oldest} or later" if oldest else "some of them never had one"
            yield Finding(
                code="fence_still",
                severity=Severity.CRITICAL,
                about=queue.name,
                what=f"no tick reads partitions {named(list(still))}: {since}",
                do="see whether their schedules fire and whether the tick function fails",
                page=runbook("missing-ticks"),
            )


def ttl_off(seen: Seen) -> Iterator[Finding]:
    """Tell that rows are not collected, because jobs are hours late."""
    if seen.figure(seen.deployment.names.deployment, "ttl_off"):
        yield Finding(
            code="ttl_off",
            severity=Severity.WARNING,
            about=seen.deployment.names.table,
            what="DynamoDB's TTL is switched off, or should be and cannot, because jobs are over six hours late",
            do="mend what keeps ticks from them: TTL is switched on again once they have caught up",
            page=runbook("ttl-off"),
        )


def partitions_too_few(seen: Seen) -> Iterator[Finding]:
    """Name queues whose partitions carry less than is expected, or than was handed over."""
    for queue in seen.deployment.queues:
        carried = JOBS_PER_PARTITION * queue.settings.partitions
        sent = seen.figure(queue.name, "rate")
        for rate, told in ((queue.expected_rate or 0, "are expected"), (sent, "were handed over at most")):
            if rate > carried:
                yield _too_few(queue, rate, told)


def _too_few(queue: DeployedQueue, rate: float, told: str) -> Finding:
    count = queue.settings.partitions
    return Finding(
        code="partitions_too_few",
        severity=Severity.WARNING,
        about=queue.name,
        what=f"{rate:,.0f} jobs a second {told}, and {count} partitions carry {JOBS_PER_PARTITION * count:,}",
        do=f"set partitions to {-(-int(rate) // JOBS_PER_PARTITION)} in queues.yaml, and deploy",
        page=guide("too-few-partitions"),
    )


def named(names: Sequence[str]) -> str:
    """Return names for a sentence, the first few of many.

    >>> named(["a", "b"])
    'a, b'
    """
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
