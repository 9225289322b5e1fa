"""Seen: what was looked at of a deployment. A part that is None was not, or could not be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline.config.names import Names
from dueline.lookup.control import Control
from dueline.model.job import Partition
from dueline.model.queue_settings import PLANNER, QueueSettings
from dueline.operate.kinds import Kind

# What figures were read over, and logs.
LOOKED_BACK = timedelta(hours=1)
# The measured subject, such as a queue's name or a function's, and what was measured of it.
Figure = tuple[str, str]
FUNCTIONS = ("api", "ingest", "planner", "tick", "ttl")


@dataclass(frozen=True, kw_only=True, slots=True)
class DeployedQueue:
    """A queue as its stack published it: the version that deployed it is None where it told none."""

    settings: QueueSettings
    version: str | None = None
    expected_rate: int | None = None

    @property
    def name(self) -> str:
        return self.settings.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A deployment as it published itself. `schema` is 0, and `api_id` empty, where it told none."""

    names: Names
    lookahead: timedelta
    queues: tuple[DeployedQueue, ...]
    version: str | None = None
    schema: int = 0
    oldest_schema: int = 0
    api_id: str = ""

    def ticking(self) -> list[QueueSettings]:
        """Return all queues that have ticks, Dueline's own among them."""
        return [*(queue.settings for queue in self.queues), PLANNER]

    def partitions(self) -> list[Partition]:
        return [partition for queue in self.ticking() for partition in queue.all_partitions()]


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueDepth:
    """How many messages an SQS queue holds, and for how long it keeps them."""

    waiting: int
    in_flight: int = 0
    retention: timedelta = timedelta(days=4)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """What a function logged of what went wrong, of which queue if it told one, and how often."""

    function: str
    message: str
    reason: str
    queue: str | None = None
    count: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    """An alarm of the deployment. `page` is the runbook that its description names, if it names one.

    One that `is_silent` tells that what it watches is not reported any more.
    """

    name: str
    is_ringing: bool
    description: str
    notifies: bool
    page: str | None = None
    is_silent: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """How much of a quota is used."""

    used: int
    quota: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What was seen at the instant `now`, by its parts, each as the look of that name tells it."""

    deployment: Deployment
    now: datetime
    schedules: Mapping[str, str] | None = None
    watches: Mapping[str, str] | None = None
    fences: Mapping[Partition, str] | None = None
    controls: Mapping[str, Control] | None = None
    depths: Mapping[str, QueueDepth | None] | None = None
    left: Mapping[str, QueueDepth] | None = None
    figures: Mapping[Figure, float] = field(default_factory=dict)
    logged: Sequence[LogLine] = ()
    logs_gone: Sequence[str] = ()
    reserved: Mapping[str, int | None] | None = None
    sources: Mapping[str, Sequence[str]] | None = None
    concurrency: int | None = None
    alarms: Sequence[Alarm] | None = None
    subscribers: Mapping[str, int] | None = None
    stacks: Mapping[str, str] | None = None
    policies: Share | None = None
    roles: Mapping[str, Share] | None = None
    letters: Mapping[str, Sequence[Kind]] = field(default_factory=dict)

    def figure(self, about: str, what: str) -> float:
        """Return what was measured, 0 where nothing was."""
        return self.figures.get((about, what), 0.0)
