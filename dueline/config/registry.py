"""Queues' settings as JSON: the registry beside the functions' code, and what each queue's stack publishes in SSM."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dueline.core.job import Partition
from dueline.core.queue_settings import QueueSettings
from dueline.errors import RETRYABLE, NotYet, QueueNotFound


@dataclass(frozen=True, slots=True)
class Registry:
    """The queues of a deployment, by name, as queues.yaml declares them.

    `active_partitions` returns how many partitions of a queue have a schedule, and may raise Throttled or Unavailable.
    `owners` are the ARNs, or the names here, of the topics of queues' owners; `measured` are the queues with metrics of
    their own.
    """

    queues: Mapping[str, QueueSettings]
    active_partitions: Callable[[QueueSettings], int] = attrgetter("partitions")
    owners: Mapping[str, str] = field(default_factory=dict)
    measured: frozenset[str] = frozenset()

    def queue(self, name: str) -> QueueSettings:
        """Return a queue's settings. Raises QueueNotFound when queues.yaml has no such queue."""
        try:
            return self.queues[name]
        except KeyError:
            raise QueueNotFound(f"there is no queue {name[:100]!r}: it is not in queues.yaml") from None

    def partitions(self) -> list[Partition]:
        return [partition for queue in self.queues.values() for partition in queue.all_partitions()]

    def taking(self, name: str) -> QueueSettings:
        """Return a queue's settings with only those partitions that have a tick: jobs in others would be lost.

        Raises QueueNotFound, NotYet while none has a tick, and Throttled or Unavailable when that is not known.
        """
        queue = self.queue(name)
        active = self.active_partitions(queue)
        if active < 1:
            raise NotYet(f"queue {name!r} takes no jobs yet: its stack is not deployed")
        return replace(queue, partitions=min(active, queue.partitions))

    def taking_counts(self, *names: str) -> dict[str, int]:
        """Return how many partitions of these queues, or of all, take jobs, as far as that is known."""
        counts = dict[str, int]()
        for queue in (self.queues[name] for name in names or self.queues):
            with suppress(*RETRYABLE):
                counts[queue.name] = min(self.active_partitions(queue), queue.partitions)
        return counts

    def takes(self, partition: Partition) -> bool:
        """Return whether queues.yaml declares a partition and it is known to have a tick."""
        queue = self.queues.get(partition.queue)
        try:
            return queue is not None and queue.declares(partition) and partition.number < self.active_partitions(queue)
        except RETRYABLE:
            return False

    def is_precise(self, name: str) -> bool:
        """Return whether a queue is precise; one that queues.yaml does not declare any more is not."""
        return name in self.queues and self.queues[name].precise


def to_json(queues: Iterable[QueueSettings], *, watched: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> str:
    """Return what `load` reads; `watched` has the `owner` and `metrics` of the queues that have any."""
    return json.dumps({queue.name: queue.to_json() | {**watched.get(queue.name, {})} for queue in queues}, indent=1)


def load(path: Path) -> Registry:
    """Return the registry that `to_json` wrote."""
    queues = json.loads(path.read_text())
    return Registry(
        {name: QueueSettings.from_json(queue, name=name) for name, queue in queues.items()},
        owners={name: queue["owner"] for name, queue in queues.items() if "owner" in queue},
        measured=frozenset(name for name, queue in queues.items() if "metrics" in queue),
    )
