"""The registry of queues, as JSON beside the functions' code."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from dueline.errors import QueueNotFound
from dueline.job import Partition
from dueline.queue import QueueSettings


@dataclass(frozen=True, slots=True)
class Registry:
    """The queues of a deployment, by name."""

    queues: Mapping[str, QueueSettings]

    def queue(self, name: str) -> QueueSettings:
        """Return a queue's settings. Raises QueueNotFound when queues.yaml has no such queue."""
        try:
            return self.queues[name]
        except KeyError:
            raise QueueNotFound(f"there is no queue {name[:100]!r}: it is not in queues.yaml") from None

    def has(self, partition: Partition) -> bool:
        """Tell whether a partition is one of queues.yaml; the ticks of others go on."""
        return partition.queue in self.queues and partition.number < self.queues[partition.queue].partitions

    def is_precise(self, name: str) -> bool:
        """Tell whether a queue is precise; one that has left queues.yaml is not."""
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
    return Registry({name: settings_from(told, name=name) for name, told in json.loads(path.read_text()).items()})


def settings_from(told: Mapping[str, Any], *, name: str) -> QueueSettings:
    """Return the settings that `settings_of` wrote, whatever stands beside them."""
    known = {field: told[field] for field in ("partitions", "precise", "priorities")}
    # A queue whose stack is older than the library publishes no `track`.
    known["track"] = told.get("track", False)
    return QueueSettings(name=name, retention=timedelta(seconds=told["retention"]), **known)
