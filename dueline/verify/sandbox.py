"""What checks need of a deployment of their own: a sandbox, as contracts. It is handed in: nothing here is AWS's."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from dueline.client.client import Client
from dueline.ports import Clock
from dueline.verify.faults import Faults
from dueline.worker.received import ReceivedJob

# The deployment that checks run in, and its queues: dueline/verify/queues.yaml.
NAME = "dueline-verify"
PLAIN, NEIGHBOUR, PRECISE, MOVED, FLOOD, LEVELS = "plain", "plain-vip", "precise", "moved", "flood", "levels"
QUEUES = (PLAIN, NEIGHBOUR, PRECISE, MOVED, FLOOD, LEVELS)
# That the queue `levels` has, and that `moved` has but while a check changes them.
PRIORITIES, PARTITIONS_OF_MOVED = 2, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Periods:
    """In seconds: jobs due within the direct horizon go straight to their queue, ticks look the lookahead ahead."""

    direct_horizon: int
    lookahead: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Landed:
    """A message as a plain consumer got it, and by SQS's own clock when it was `sent`, and first received: `visible`.

    `id` is empty for what Dueline did not send.
    """

    id: str
    body: str = field(repr=False)
    sent: datetime
    visible: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The status of an answer of the HTTP API, and its content."""

    status: int
    content: Any = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Used:
    """What AWS counted: write units of the table of jobs, read units of it and of the table of states, messages sent to
    a queue, requests to the HTTP API, and bytes of its logs.
    """

    writes: float
    reads: float
    messages: float
    requests: float
    log_bytes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """A row that was left for DynamoDB to delete after an instant, and whether it is still there."""

    name: str
    until: datetime
    is_there: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """Something that a holder of a policy tries: a method of HTTP on a path, or an action on rows or an SQS queue.

    `on` is the path; or `jobs` or `state` and a partition key, as `jobs plain#0`; or the name of a queue. Over
    HTTP, what IAM lets pass and Dueline refuses is allowed, unless `must_succeed`.
    """

    action: str
    on: str
    body: Mapping[str, object] | None = None
    must_succeed: bool = False

    def __str__(self) -> str:
        return f"{self.action} {self.on}"


@dataclass(frozen=True, kw_only=True, slots=True)
class AsDeployed:
    """How AWS has a deployment set now, by its resources' names; what is not there is missing.

    `schedules` tells whether each is enabled, `alarms` whether each notifies a topic, `expiring` whether a table's rows
    are deleted after their time, and `deletable` whether a table is not protected. SQS queues have their dead-letter
    queue (or an empty name), and keep messages for so many `days`.
    """

    schedules: Mapping[str, bool]
    dead_letters: Mapping[str, str]
    days: Mapping[str, float]
    expiring: Mapping[str, bool]
    deletable: Mapping[str, bool]
    alarms: Mapping[str, bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployed:
    """How a deployment ended: through, or not; and the last of what was told of it."""

    is_through: bool
    told: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A value of one of Dueline's own metrics, of the deployment or of a queue, at an instant."""

    metric: str
    value: float
    at: datetime
    queue: str | None = None


class Sandbox(Protocol):
    """A deployment that nobody else uses, in an account of AWS, or on a local AWS (`is_local`)."""

    @property
    def name(self) -> str: ...

    @property
    def region(self) -> str: ...

    @property
    def is_local(self) -> bool: ...

    @property
    def periods(self) -> Periods: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def client(self) -> Client: ...

    @property
    def faults(self) -> Faults: ...

    def spread(self, ask: Callable[[Any], Any], items: Iterable[Any], *, lanes: int | None = None) -> Iterable[Any]:
        """Do something for several at once, as many as there are `lanes`; return the results in order."""
        ...

    def as_deployed(self) -> AsDeployed:
        """Return how AWS has the deployment set now."""
        ...

    def inbox(self, queue: str, *, priority: int = 1) -> AbstractContextManager[Sequence[Landed]]:
        """Receive and delete whatever comes in a queue while the context is open, into a sequence that grows."""
        ...

    def failing(self, queue: str) -> AbstractContextManager[None]:
        """Receive whatever comes in any level of a queue while the context is open, and delete nothing."""
        ...

    def redrive(self, queue: str | None) -> int:
        """Put back all dead letters of a queue, or all parked jobs; return how many were."""
        ...

    def working(
        self, queue: str, function: Callable[[ReceivedJob], None], *, seconds: float = 0.0
    ) -> AbstractContextManager[None]:
        """Let a worker of the library process a queue while the context is open, each job for some seconds more."""
        ...

    def send(self, queue: str, bodies: Sequence[str], *, delay: int) -> None:
        """Send up to ten messages straight to SQS, past Dueline, with one `DelaySeconds`."""
        ...

    def fence(self, queue: str) -> datetime | None:
        """Return the fence of a queue's first partition, None before its first tick."""
        ...

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        """Ask the HTTP API, again if no answer comes."""
        ...

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """Send an upload; return the status of the answer."""
        ...

    def holding(self, policy: str, queue: str) -> AbstractContextManager[Callable[[Call], bool]]:
        """Yield what tries a call as a role that has one policy of a queue and nothing else; it tells if it may."""
        ...

    def simulating(self, policy: str, queue: str) -> Callable[[Call], bool]:
        """Return what tells, by IAM's own simulator, whether a policy of a queue allows a call. Nothing is done."""
        ...

    def simulating_function(self, function: str) -> Callable[[Call], bool]:
        """Return what tells the same of a function's role, by actions of AWS such as `sqs:PurgeQueue`."""
        ...

    def ringing(self) -> AbstractContextManager[None]:
        """Have a message in every dead-letter queue while the context is open."""
        ...

    def most_at_once(self) -> int:
        """Return how many functions the account lets run at once."""
        ...

    def alarms(self) -> Mapping[str, str]:
        """Return the state of each alarm by what it is on, such as `TickThrottles` or `plain Lateness`."""
        ...

    def fail(self, function: str) -> None:
        """Invoke a function with what it cannot read, or while it cannot do its work."""
        ...

    def tell(self, figures: Sequence[Figure]) -> None:
        """Tell CloudWatch figures, as if the deployment's functions had."""
        ...

    def deploying(self, queue: str, partitions: int) -> AbstractContextManager[Callable[[], Deployed | None]]:
        """Deploy the sandbox with so many partitions of a queue; the context ends when that is over.

        Yields what tells how it ended, None until then. Raises NotJudged where there is nothing to deploy with.
        """
        ...

    def used(self, queue: str, *, start: datetime, end: datetime) -> Used:
        """Return what AWS counted between two instants, as far as CloudWatch has it by now."""
        ...

    def leave(self, name: str, *, until: datetime) -> None:
        """Leave a row that DynamoDB is to delete after an instant, and note it."""
        ...

    def left(self) -> Sequence[Left]:
        """Return the rows that were left and not forgotten."""
        ...

    def forget(self, name: str) -> None:
        """Remove the note of a row."""
        ...

    def tidy(self) -> list[str]:
        """Mend and remove whatever a run left behind; return what could not be, and why."""
        ...
