"""Observation: what was looked at of a deployment. A part that is None or empty was not, or could not be."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import wraps
from typing import Any, NamedTuple, Protocol

from dueline.config.names import Names, runbook
from dueline.core.job import Partition
from dueline.core.overview import Control
from dueline.core.ports import ParallelMap
from dueline.core.queue_settings import PLANNER, QueueSettings
from dueline.core.rows import WatchNote
from dueline.errors import DuelineError, Forbidden

# What figures were read over, and logs.
LOOKED_BACK = timedelta(hours=1)
# The measured subject, such as a queue's name or a function's, and what was measured of it.
Figure = tuple[str, str]
FUNCTIONS = ("api", "ingest", "planner", "tick", "watch")
_GUIDE = "docs/doctor.md"


# Checks: what is to be looked at.
@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check: what it looks at, in words, the rights that it needs, and what returns what it saw."""

    what: str
    needs: str
    look: Callable[[], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unchecked:
    """What could not be looked at, the right that this needs, "" if no right helps, and what AWS said."""

    what: str
    needs: str
    reason: str


def run_checks(
    checks: Sequence[Check], *, spread: ParallelMap, on_progress: Callable[[int, int], None]
) -> tuple[list[Any], list[Unchecked]]:
    """Run all checks; return what they saw. One that fails is reported, and hides nothing else."""
    answers, unseen = list[Any](), list[Unchecked]()
    for done, answer in enumerate(spread(_answer, checks), start=1):
        (unseen if isinstance(answer, Unchecked) else answers).append(answer)
        on_progress(done, len(checks))
    return answers, unseen


def _answer(check: Check) -> Any:
    try:
        return check.look()
    except DuelineError as error:
        needs = check.needs if isinstance(error, Forbidden) else ""
        return Unchecked(what=check.what, needs=needs, reason=str(error))
    except Exception as error:
        return Unchecked(what=check.what, needs="", reason=f"{type(error).__name__}: {error}")


# Observed.
@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedDeployment:
    """A deployment as it published itself."""

    names: Names
    queues: tuple[QueueSettings, ...]

    def ticking(self) -> list[QueueSettings]:
        """Return all queues that have ticks, Dueline's own among them."""
        return [*self.queues, PLANNER]

    def partitions(self) -> list[Partition]:
        return [partition for queue in self.ticking() for partition in queue.all_partitions()]

    def levels(self, queue: QueueSettings) -> list[str]:
        """Return the names of a queue's SQS queues, that of priority 1 first."""
        return [self.names.queue(queue.name, priority) for priority in range(1, queue.priorities + 1)]

    def sqs_queues(self) -> list[str]:
        names = self.names
        of_queues = [name for each in self.queues for name in (*self.levels(each), names.queue_dlq(each.name))]
        own = [names.inbound, names.inbound_dlq, names.dispatch_dlq, names.tick_dlq]
        return [*own, names.queue(PLANNER.name), names.queue_dlq(PLANNER.name), *of_queues]


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueDepth:
    """How many messages an SQS queue holds, and for how long it keeps them."""

    waiting: int
    in_flight: int = 0
    retention: timedelta = timedelta(days=4)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """What a function logged of what went wrong, of which queue if it named one, and how often."""

    function: str
    message: str
    reason: str
    queue: str | None = None
    count: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    """An alarm of the deployment. `page` is the runbook that its description names, if it names one."""

    name: str
    is_ringing: bool
    description: str
    notifies: bool
    page: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What was seen at the instant `now`, by its parts, each as the check of that name returns it.

    `partly` is what a check saw only a part of.
    """

    deployment: ObservedDeployment
    now: datetime
    schedules: Mapping[str, str] | None = None
    watches: Mapping[str, str] | None = None
    fences: Mapping[Partition, str] | None = None
    controls: Mapping[str, Control] = field(default_factory=dict)
    depths: Mapping[str, QueueDepth | None] = field(default_factory=dict)
    left: Mapping[str, QueueDepth] = field(default_factory=dict)
    notes: Mapping[str, WatchNote] = field(default_factory=dict)
    figures: Mapping[Figure, float] = field(default_factory=dict)
    queue_figures: Mapping[Figure, float] = field(default_factory=dict)
    logged: Sequence[LogLine] = ()
    reserved: Mapping[str, int | None] = field(default_factory=dict)
    sources: Mapping[str, Sequence[str]] | None = None
    alarms: Sequence[Alarm] = ()
    subscribers: Mapping[str, int] = field(default_factory=dict)
    partly: Sequence[Unchecked] = ()

    def figure(self, about: str, what: str) -> float:
        """Return what was measured, 0 where nothing was."""
        return self.figures.get((about, what), self.queue_figures.get((about, what), 0.0))


Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One metric of a queue, or of the deployment (None), and which statistic of its values: Sum or Maximum."""

    queue: str | None
    metric: str
    statistic: str


class Figures(Protocol):
    """The figures that a deployment's functions log."""

    def read(self, series: Sequence[Series], *, start: datetime, end: datetime, period: int) -> list[Points]:
        """Return the points of each series, in order of time: one for each period, in seconds, that has a value.

        Raises Forbidden, Throttled or Unavailable.
        """


# Findings: what is wrong, what to do about it, and the page with more.
class Severity(Enum):
    """How bad a finding is, the worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """What is wrong, with what it is about: a queue, a function, a table. `code` never changes; `do` is the remedy.

    A rule leaves out what is as `rule` says.
    """

    about: str
    what: str
    do: str = ""
    page: str = ""
    code: str = ""
    severity: Severity = Severity.NOTE


Rule = Callable[[Observation], Iterator[Finding]]
# Of one severity, their findings come in this order.
RULES: list[Rule] = []


def rule(
    code: str, severity: Severity, *, page: str = "", do: str = ""
) -> Callable[[Callable[[Observation], Iterable[Finding]]], Rule]:
    """Complete the findings of a function. Their page, unless one is given, is the runbook of `code`."""
    page = page or runbook(code.replace("_", "-"))

    def decorate(see: Callable[[Observation], Iterable[Finding]]) -> Rule:
        @wraps(see)
        def find(observed: Observation) -> Iterator[Finding]:
            for each in see(observed):
                own = {"code": each.code or code, "do": each.do or do, "page": each.page or page}
                yield each._replace(severity=severity, **own)

        RULES.append(find)
        return find

    return decorate


def guide(heading: str) -> str:
    return f"{_GUIDE}#{heading}"
