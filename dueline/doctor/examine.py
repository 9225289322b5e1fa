"""Examine: look at all parts of a deployment, then say what is wrong, the worst first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dueline.doctor import alarms, backlog, dead_letters, deployed, functions, quotas, ticks
from dueline.doctor.finding import Finding, Report, Unseen
from dueline.doctor.seen import Seen
from dueline.errors import DuelineError
from dueline.ports import Spread

# Of one severity, the first come first.
RULES: tuple[Callable[[Seen], Iterable[Finding]], ...] = (
    ticks.schedules_missing,
    ticks.schedules_disabled,
    ticks.fences_still,
    backlog.queues_gone,
    backlog.late_jobs,
    ticks.ttl_off,
    backlog.inbound_backlog,
    backlog.messages_kept_long,
    backlog.queues_left,
    functions.functions_stopped,
    dead_letters.dead_letters,
    functions.functions_failing,
    functions.functions_throttled,
    functions.logs_gone,
    functions.api_faults,
    functions.api_unreached,
    backlog.tables_throttled,
    functions.lines_of_trouble,
    functions.schedules_stood_still,
    backlog.delayed_jobs,
    ticks.watches_off,
    ticks.partitions_too_few,
    deployed.stacks_failed,
    deployed.versions_differ,
    deployed.clients_differ,
    quotas.quotas_near,
    alarms.alarms_ringing,
    alarms.alarms_gone,
    alarms.alarms_unheard,
    backlog.queues_stopped,
)


# Beside the parts that a look tells, what of them it did not see.
PARTLY = "partly"


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """One look at a deployment: the parts of Seen that it tells, in words, and the rights that it needs."""

    what: str
    needs: str
    look: Callable[[], dict[str, Any]]


def examine(
    looks: Sequence[Look],
    *,
    seen: Callable[..., Seen],
    spread: Spread = map,
    on_progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Report:
    """Look, and judge what was seen. What could not be looked at is told, and hides nothing else."""
    parts: dict[str, Any] = {}
    unseen: list[Unseen] = []
    for done, answer in enumerate(spread(_answer, looks), start=1):
        if isinstance(answer, Unseen):
            unseen.append(answer)
        else:
            unseen += answer.pop(PARTLY, ())
            parts |= answer
        on_progress(done, len(looks))
    return Report(findings=tuple(findings(seen(**parts))), unseen=tuple(unseen))


def findings(seen: Seen) -> list[Finding]:
    """Return what is wrong, the worst first."""
    found = (finding for rule in RULES for finding in rule(seen))
    return sorted(found, key=lambda finding: finding.severity.rank)


def _answer(look: Look) -> dict[str, Any] | Unseen:
    try:
        return look.look()
    except DuelineError as error:
        return Unseen(what=look.what, needs=look.needs, reason=str(error))
