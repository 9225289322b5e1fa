"""Dead letters: how many there are in each dead-letter queue, and why, as far as that is known."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dueline.config.names import Names
from dueline.config.runbooks import runbook
from dueline.doctor.finding import Finding, Severity
from dueline.doctor.seen import Seen
from dueline.model.queue_settings import PLANNER

_MOST_REASONS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """What lies in a dead-letter queue: its code and page, what it is, and the remedy. `queue` returns its name."""

    queue: Callable[[Names], str]
    code: str
    page: str
    what: str
    do: str


_OF_THE_DEPLOYMENT = (
    _Kind(
        queue=lambda names: names.dispatch_dlq,
        code="parked_jobs",
        page="parked-jobs",
        what="jobs are parked: they can never be sent as they are",
        do="remove the reason, then: dueline redrive --parked --apply",
    ),
    _Kind(
        queue=lambda names: names.inbound_dlq,
        code="inbound_dead_letters",
        page="inbound-dead-letters",
        what="messages of the inbound queue are no jobs, or could not be stored for hours",
        do="mend who sent them",
    ),
    _Kind(
        queue=lambda names: names.tick_dlq,
        code="failed_firings",
        page="failed-firings",
        what="firings of ticks failed",
        do="see whether ticks are missing; the messages go by themselves",
    ),
    _Kind(
        queue=lambda names: names.queue_dlq(PLANNER.name),
        code="planner_dead_letters",
        page="planner-dead-letters",
        what="planning jobs failed for hours",
        do="remove what the planner's log names; the messages go by themselves within a day",
    ),
)


def dead_letters(seen: Seen) -> Iterator[Finding]:
    """Name the dead-letter queues that are not empty, with reasons from a sample, or from the log of the last hour."""
    names = seen.deployment.names
    of_queues = [(queue.name, _of_queue(queue.name)) for queue in seen.deployment.queues]
    for about, kind in (*of_queues, *((each.queue(names), each) for each in _OF_THE_DEPLOYMENT)):
        depth = (seen.depths or {}).get(kind.queue(names))
        count = depth.waiting + depth.in_flight if depth else 0
        if count:
            yield Finding(
                code=kind.code,
                severity=Severity.WARNING,
                about=about,
                what=f"{count:,} {kind.what}{_reasons(seen, kind)}",
                do=kind.do,
                page=runbook(kind.page),
            )


def _of_queue(queue: str) -> _Kind:
    return _Kind(
        queue=lambda names: names.queue_dlq(queue),
        code="dead_letters",
        page="dead-letters",
        what="jobs failed for good",
        do=f"mend the worker, then: dueline redrive {queue} --apply",
    )


# What functions log of a message that they put into a dead-letter queue.
_LOGGED = {"parked_jobs": "parked", "inbound_dead_letters": "rejected"}


def _reasons(seen: Seen, kind: _Kind) -> str:
    sampled = seen.letters.get(kind.queue(seen.deployment.names), ())
    counted: Counter[str] = Counter({each.error: each.count for each in sampled})
    where = "of a sample"
    if not counted:
        where = "of the last hour's log"
        for line in seen.logged:
            if line.message == _LOGGED.get(kind.code):
                counted[line.reason] += line.count
    told = "; ".join(f"{count:,} of {reason}" for reason, count in counted.most_common(_MOST_REASONS))
    return f" ({where}: {told})" if told else ""
