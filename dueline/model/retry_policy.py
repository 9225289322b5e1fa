"""Retry policy: how often a failed job is retried, and after which delay."""

from dataclasses import dataclass
from enum import StrEnum

# SQS hides a message for 12 hours at most, counted from its receipt.
# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
MAX_HIDDEN_SECONDS = 43_200
# Of these, what a worker counts on: its own count of them begins and ends at other moments than SQS's, by a long poll
# or the batching window of a Lambda function, and by requests that are tried again.
LONGEST_HIDDEN_SECONDS = MAX_HIDDEN_SECONDS - 600
LINEAR_ATTEMPTS = 5


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
        doublings = self._doublings(attempt)
        steps = 1 if self.backoff in (Backoff.CONSTANT, Backoff.EXPONENTIAL) else min(attempt, self._linear_attempts)
        whole = min(self.max_delay, (self.delay * steps) << doublings)
        return max(1, round(whole / 2 * (1 + jitter))) if doublings else whole

    @property
    def _linear_attempts(self) -> int:
        return LINEAR_ATTEMPTS if self.backoff is Backoff.LINEAR_EXPONENTIAL else self.attempts

    def _doublings(self, attempt: int) -> int:
        if self.backoff is Backoff.EXPONENTIAL:
            return attempt - 1
        return max(0, attempt - LINEAR_ATTEMPTS) if self.backoff is Backoff.LINEAR_EXPONENTIAL else 0
