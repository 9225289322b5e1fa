"""The settings of a queue that its workers need."""

from dataclasses import dataclass, field

from dueline.model.queue_settings import QueueSettings
from dueline.model.retry_policy import RetryPolicy

LEAST_VISIBILITY_TIMEOUT = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkSettings:
    """The settings of a queue that its workers need. Times are in seconds.

    `urls` are the URLs of its SQS queues, the most urgent priority first; `dead_letters` is that of its dead-letter
    queue. A message is hidden for `visibility_timeout`, which is extended while its job runs, up to `longest_run`.
    After `max_receives`, SQS itself moves it to the dead-letter queue.
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
        """After how many receives a failed job is not retried."""
        return min(self.retry.attempts, self.max_receives)
