"""Registry: the declared queues, as JSON beside the functions' code."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

from dueline.errors import RETRYABLE, NotYet, QueueNotFound
from dueline.model.job import Partition
from dueline.model.queue_settings import QueueSettings


def partitions_by_name(queues: Iterable[QueueSettings]) -> dict[str, int]:
    """Return how many partitions are declared of each queue."""
    return {queue.name: queue.partitions for queue in queues}


@dataclass(frozen=True, slots=True)
class Registry:
    """The queues of a deployment, by name, as queues.yaml declares them.

    `standing` returns how many partitions of a queue have a schedule, and may raise Throttled or Unavailable;
    `standings` returns the same of several by name, as far as it is known.
    """

    queues: Mapping[str, QueueSettings]
    standing: Callable[[QueueSettings], int] = attrgetter("partitions")
    standings: Callable[[Iterable[QueueSettings]], Mapping[str, int]] = partitions_by_name

    def queue(self, name: str) -> QueueSettings:
        """Return a queue's settings. Raises QueueNotFound when queues.yaml has no such queue."""
        try:
            return self.queues[name]
        except KeyError:
            raise QueueNotFound(f"there is no queue {name[:100]!r}: it is not in queues.yaml") from None

    def has(self, partition: Partition) -> bool:
        """Return whether queues.yaml declares a partition. Those that it does not any more keep their ticks."""
        return partition.queue in self.queues and self.queues[partition.queue].declares(partition)

    def partitions(self) -> list[Partition]:
        """Return all partitions that queues.yaml declares."""
        return [partition for queue in self.queues.values() for partition in queue.all_partitions()]

    def taking(self, name: str) -> QueueSettings:
        """Return a queue's settings with only those partitions that have a tick: jobs in others would be lost.

        Raises QueueNotFound, NotYet while none has a tick, and Throttled or Unavailable when that is not known.
        """
        queue = self.queue(name)
        standing = self.standing(queue)
        if standing < 1:
            raise NotYet(f"queue {name!r} takes no jobs yet: its stack is not deployed")
        return replace(queue, partitions=min(standing, queue.partitions))

    def taking_counts(self, *names: str) -> dict[str, int]:
        """Return how many partitions of these queues, or of all, take jobs, as far as that is known."""
        queues = {name: self.queues[name] for name in names or self.queues}
        return {name: min(count, queues[name].partitions) for name, count in self.standings(queues.values()).items()}

    def takes(self, partition: Partition) -> bool:
        """Return whether queues.yaml declares a partition and it is known to have a tick."""
        try:
            return self.has(partition) and partition.number < self.standing(self.queues[partition.queue])
        except RETRYABLE:
            return False

    def is_precise(self, name: str) -> bool:
        """Return whether a queue is precise; one that queues.yaml does not declare any more is not."""
        return name in self.queues and self.queues[name].precise


def to_json(queues: Iterable[QueueSettings]) -> str:
    return json.dumps({queue.name: settings_of(queue) for queue in queues}, indent=1)


def settings_of(queue: QueueSettings) -> dict[str, int | bool]:
    """Return a queue's settings as clients and functions read them; retention is in seconds."""
    retention = int(queue.retention.total_seconds())
    return {
        "partitions": queue.partitions,
        "retention": retention,
        "precise": queue.precise,
        "priorities": queue.priorities,
        "track": queue.track,
    }


def load(path: Path) -> Registry:
    """Return the registry that `to_json` wrote."""
    return Registry({name: settings_from(queue, name=name) for name, queue in json.loads(path.read_text()).items()})


def settings_from(queue: Mapping[str, Any], *, name: str) -> QueueSettings:
    """Return the settings that `settings_of` wrote; further fields are ignored."""
    fields = {field: queue[field] for field in ("partitions", "precise", "priorities")}
    # A queue whose stack is older than the library publishes no `track`.
    fields["track"] = queue.get("track", False)
    return QueueSettings(name=name, retention=timedelta(seconds=queue["retention"]), **fields)
