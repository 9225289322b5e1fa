"""AWS's limits, which the ports in memory keep, too."""

from collections.abc import Sequence


def at_most(limit: int, items: Sequence[object], what: str) -> None:
    if len(items) > limit:
        raise ValueError(f"{len(items)} {what}: AWS takes {limit}")
