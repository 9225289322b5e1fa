"""What a worker has to know of a queue."""

from dataclasses import dataclass, field

from dueline.model.queue_settings import QueueSettings
from dueline.model.retry_policy import RetryPolicy

LEAST_VISIBILITY_TIMEOUT = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkSettings:
    """A queue as its workers see it. Times are in seconds.

    `urls` are those of its levels, the most urgent first, `dead_letters` that of its dead-letter queue. A message is
    hidden for `visibility_timeout` and for longer while its job runs, up to `longest_run`. After `max_receives`, SQS
    itself moves it to the dead-letter queue.
    """

    queue: QueueSettings
    urls: tuple[str, ...]
    dead_letters: str
    visibility_timeout: int = 30
    longest_run: int = 3600
    max_receives: int = 15
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def attempts(self) -> int:
        """After how many receives a job is not tried again."""
        return min(self.retry.attempts, self.max_receives)
