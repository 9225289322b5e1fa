"""Standing: how many partitions of a queue are deployed, with the schedules of their ticks."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

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
    published; `all_published` returns several at once, without those that are not there.
    """

    def __init__(
        self,
        published: Callable[[str], QueueSettings],
        *,
        clock: Clock,
        all_published: Callable[[Sequence[str]], Mapping[str, QueueSettings]] = lambda _: {},
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._published = published
        self._all_published = all_published
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
        count = self._counts.get(queue.name)
        if count is not None and self._is_known(queue):
            return count
        try:
            self._counts[queue.name] = self._ask(queue.name)
        except RETRYABLE:
            if count is None:
                raise
        self._asks_again[queue.name] = self._in_a_while()
        return self._counts[queue.name]

    def of_each(self, queues: Iterable[QueueSettings]) -> dict[str, int]:
        """Return how many partitions of each queue stand, by name, as far as that is known; it is asked of all at once.

        What is known at least: of a queue that grows, that may be fewer than another process knows to stand.
        """
        asked = list(queues)
        if unknown := [queue.name for queue in asked if not self._is_known(queue)]:
            with suppress(*RETRYABLE), self._noting_faults():
                found = self._all_published(unknown)
                self._counts |= {name: found[name].partitions if name in found else 0 for name in unknown}
            self._asks_again |= dict.fromkeys(unknown, self._in_a_while())
        return {queue.name: self._counts[queue.name] for queue in asked if queue.name in self._counts}

    def _is_known(self, queue: QueueSettings) -> bool:
        """Tell whether a queue is known well enough not to be asked for now."""
        is_recent = self._clock.monotonic() < self._asks_again.get(queue.name, 0.0)
        return is_recent or self._counts.get(queue.name, -1) >= queue.partitions

    def _ask(self, name: str) -> int:
        with self._noting_faults():
            try:
                return self._published(name).partitions
            except QueueNotFound:
                return 0

    @contextmanager
    def _noting_faults(self) -> Iterator[None]:
        # One that is not answered takes seconds: of many queues, a batch would outlast its function.
        if self._fault is not None and self._clock.monotonic() < self._fault_over:
            raise self._fault.copy()
        try:
            with translated("asking how far queues are deployed"):
                yield
        except RETRYABLE as fault:
            self._fault, self._fault_over = fault, self._in_a_while()
            raise

    def _in_a_while(self) -> float:
        return self._clock.monotonic() + ASK_AGAIN_SECONDS * (0.5 + self._jitter())
