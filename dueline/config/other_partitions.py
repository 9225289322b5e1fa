"""A file of queues, for a deployment of its own and with other partitions of some queues."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from dueline.config.deployment import load


def partitions_of(file: Path) -> dict[str, int]:
    """Return how many partitions a file declares of each queue. Raises ConfigurationError."""
    return {name: queue.partitions for name, queue in load(file).queues.items()}


def with_partitions(file: Path, partitions: Mapping[str, int], *, name: str) -> str:
    """Return what a file would be with that name and these partitions, but for queues that have as many anyway."""
    settings, known = yaml.safe_load(file.read_text()), partitions_of(file)
    settings["name"] = name
    for queue, number in partitions.items():
        if number != known[queue]:
            settings["queues"][queue] = {**(settings["queues"][queue] or {}), "partitions": number}
    return str(yaml.safe_dump(settings, sort_keys=False))
