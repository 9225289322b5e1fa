"""The settings of a queue: its partitions and levels, its rate, and how its jobs are retried."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Self

from dueline.core.job import Partition
from dueline.errors import InvalidJob, QueueNotFound

# Jobs a second that one partition carries, with rows of up to 1 KB: half of what it sustains, so that an hour's backlog
# is made up for within another. Source: docs/benchmarks.md, "Scale, by simulation".
JOBS_PER_PARTITION = 500
# Each is a resource in the queue's stack, and CloudFormation takes 500 resources a stack.
MOST_PARTITIONS = 400
_QUEUE_FIELDS = ("partitions", "retention", "precise", "priorities", "track")


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSettings:
    """The settings of a queue that scheduling and look-ups need.

    `retention` is how long after its due time a job may still be sent. The workers of a `precise` queue hold a message
    until it is due, so its delays round down. Its jobs have priorities from 1, the most urgent, to `priorities`; each
    priority has an SQS queue of its own. If it is set to `track` its jobs, workers note their outcomes, which look-ups
    return.
    """

    name: str
    partitions: int
    retention: timedelta
    precise: bool = False
    priorities: int = 1
    track: bool = False

    def declares(self, partition: Partition) -> bool:
        """Return whether queues.yaml declares this partition of the queue now."""
        return partition.number < self.partitions

    def all_partitions(self) -> list[Partition]:
        """Return the partitions that the queue has now."""
        return [Partition(queue=self.name, number=number) for number in range(self.partitions)]

    @property
    def allowed_priorities(self) -> str:
        """What an error says of a priority that the queue does not have."""
        allowed = f"from 1 to {self.priorities}, the priorities" if self.priorities > 1 else "1, the only priority"
        return f"it must be {allowed} of queue {self.name!r}"

    def to_json(self) -> dict[str, Any]:
        """Return the settings, all but the name, as clients and functions read them; retention is in seconds."""
        own = {name: getattr(self, name) for name in _QUEUE_FIELDS}
        return own | {"retention": int(self.retention.total_seconds())}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any], *, name: str) -> Self:
        """Return the settings that `to_json` wrote; further fields are ignored."""
        own = {field: settings[field] for field in _QUEUE_FIELDS}
        return cls(name=name, **own | {"retention": timedelta(seconds=settings["retention"])})


# Of planning jobs, which plan the runs of schedules: Dueline's own queue, which no team may declare.
PLANNER = QueueSettings(name="dueline-planner", partitions=1, retention=timedelta(days=7))


def not_there(queue: QueueSettings, *, priority: int = 1) -> QueueNotFound:
    """Return the error for a queue whose SQS queue is missing, or that of one of its priorities."""
    what = f"queue {queue.name!r}" if priority == 1 else f"priority {priority} of queue {queue.name!r}"
    return QueueNotFound(f"{what} has no SQS queue: it is not deployed yet, or was deleted")


MAX_JOBS = 100_000
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_UNITS = {seconds: unit for unit, seconds in _SECONDS.items()}
_TEXT = re.compile(r"(\d{1,6})/([smh])", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """At most `jobs` jobs, 0 to 100,000, per `seconds`: 1, 60 or 3600. Written as "50/s", "90/m" or "200/h"."""

    jobs: int
    seconds: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.jobs <= MAX_JOBS:
            raise InvalidJob(f"rate is {self.jobs} jobs: it must be from 0 to {MAX_JOBS}")
        if self.seconds not in _UNITS:
            raise InvalidJob(f"rate is per {self.seconds} seconds: it must be per 1, 60 or 3600")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rate in a text such as 50/s. Raises InvalidJob.

        >>> Rate.parse("90/m")
        Rate(jobs=90, seconds=60)
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            allowed = f"it must be 0 to {MAX_JOBS} jobs and a unit, such as 50/s, 90/m or 200/h"
            raise InvalidJob(f"rate is {text[:100]!r}: {allowed}")
        return cls(jobs=int(match[1]), seconds=_SECONDS[match[2]])

    def __str__(self) -> str:
        return f"{self.jobs}/{_UNITS[self.seconds]}"


# SQS hides a message for 12 hours at most, counted from its receipt.
# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
MAX_HIDDEN_SECONDS = 43_200
# Of these, what a worker counts on: its own count of them begins and ends at other moments than SQS's, by a long poll
# or the batching window of a Lambda function, and by requests that are tried again.
LONGEST_HIDDEN_SECONDS = MAX_HIDDEN_SECONDS - 600
# SQS's own, of a queue's maxReceiveCount.
MOST_RECEIVES = 1000
LINEAR_ATTEMPTS = 5
LEAST_VISIBILITY_TIMEOUT = 5


class Backoff(StrEnum):
    """How the delays between attempts grow.

    LINEAR_EXPONENTIAL, the default, grows by `delay` for five attempts and then doubles, as PinLater does.
    Source: https://medium.com/pinterest-engineering/pinlater-an-asynchronous-job-execution-system-b8664cb8aa7d
    """

    LINEAR_EXPONENTIAL = "linear-exponential"
    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """How many attempts a job has, and how long it waits between them. Times are in seconds."""

    backoff: Backoff = Backoff.LINEAR_EXPONENTIAL
    attempts: int = 10
    delay: int = 30
    max_delay: int = 3600

    def delay_after(self, attempt: int, *, jitter: float) -> int:
        """Return the seconds to wait before the next attempt, after `attempt` failed ones (1 or more).

        Where delays double, `jitter` (0 to 1) picks one between half of the full delay and all of it.

        >>> [RetryPolicy().delay_after(attempt, jitter=1) for attempt in range(1, 10)]
        [30, 60, 90, 120, 150, 300, 600, 1200, 2400]
        """
        match self.backoff:
            case Backoff.CONSTANT:
                steps, doublings = 1, 0
            case Backoff.LINEAR:
                steps, doublings = min(attempt, self.attempts), 0
            case Backoff.EXPONENTIAL:
                steps, doublings = 1, attempt - 1
            case Backoff.LINEAR_EXPONENTIAL:
                steps, doublings = min(attempt, LINEAR_ATTEMPTS), max(0, attempt - LINEAR_ATTEMPTS)
        whole = min(self.max_delay, (self.delay * steps) << doublings)
        return max(1, round(whole / 2 * (1 + jitter))) if doublings else whole


_WORK_FIELDS = ("dead_letters", "visibility_timeout", "longest_run", "max_receives", "message_retention")


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkSettings:
    """The settings of a queue that its workers need. Times are in seconds.

    `urls` are the URLs of its SQS queues, the most urgent priority first; `dead_letters` is that of its dead-letter
    queue. A message is hidden for `visibility_timeout`, which is extended while its job runs, up to `longest_run`.
    After `max_receives`, SQS itself moves it to the dead-letter queue, and deletes it `message_retention` after it was
    sent.
    """

    queue: QueueSettings
    urls: tuple[str, ...]
    dead_letters: str
    visibility_timeout: int = 30
    longest_run: int = 3600
    max_receives: int = 15
    message_retention: int = 345_600
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def attempts(self) -> int:
        """After how many receives a failed job is not retried."""
        return min(self.retry.attempts, self.max_receives)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a queue's stack publishes them: those of a worker alone are its `work`."""
        work = {name: getattr(self, name) for name in _WORK_FIELDS} | {"retry": asdict(self.retry)}
        return {"url": self.urls[0], "urls": list(self.urls), **self.queue.to_json(), "work": work}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any], *, name: str) -> Self:
        """Return the settings that `to_json` wrote; further fields are ignored."""
        work = settings["work"]
        retry = {field: work["retry"][field] for field in ("attempts", "delay", "max_delay")}
        return cls(
            queue=QueueSettings.from_json(settings, name=name),
            urls=tuple(settings["urls"]),
            retry=RetryPolicy(backoff=Backoff(work["retry"]["backoff"]), **retry),
            **{field: work[field] for field in _WORK_FIELDS},
        )
