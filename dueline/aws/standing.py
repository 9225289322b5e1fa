"""Standing: how many partitions of a queue are deployed, with the schedules of their ticks."""

import random
from collections.abc import Callable

from dueline.aws.faults import translated
from dueline.errors import RETRYABLE, DuelineError, QueueNotFound
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Clock

# Before what is not there yet, or was not answered, is asked for again; jittered, lest all processes ask at once.
ASK_AGAIN_SECONDS = 5.0


class Standing:
    """Knows how many partitions of a queue stand: those that its stack published after it made their schedules.

    SSM answers 40 requests a second per account. So a queue is read until all partitions stand that queues.yaml
    declares, and never again: no schedule is removed while it is declared. `published` returns a queue as it is
    published.
    """

    def __init__(
        self,
        published: Callable[[str], QueueSettings],
        *,
        clock: Clock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._published = published
        self._clock = clock
        self._jitter = jitter
        self._counts: dict[str, int] = {}
        self._asks_again: dict[str, float] = {}
        self._fault: DuelineError | None = None
        self._fault_over = 0.0

    def __call__(self, queue: QueueSettings) -> int:
        """Return how many partitions of a queue stand, as last read; none while it is not deployed.

        Raises Throttled or Unavailable where it was never read.
        """
        count, again = self._counts.get(queue.name), self._asks_again.get(queue.name, 0.0)
        if count is not None and (count >= queue.partitions or self._clock.monotonic() < again):
            return count
        try:
            self._counts[queue.name] = self._ask(queue.name)
        except RETRYABLE:
            if count is None:
                raise
        self._asks_again[queue.name] = self._in_a_while()
        return self._counts[queue.name]

    def _ask(self, name: str) -> int:
        # One that is not answered takes seconds: of many queues, a batch would outlast its function.
        if self._fault is not None and self._clock.monotonic() < self._fault_over:
            raise self._fault.copy()
        try:
            with translated("asking how far queues are deployed"):
                return self._published(name).partitions
        except QueueNotFound:
            return 0
        except RETRYABLE as fault:
            self._fault, self._fault_over = fault, self._in_a_while()
            raise

    def _in_a_while(self) -> float:
        return self._clock.monotonic() + ASK_AGAIN_SECONDS * (0.5 + self._jitter())
