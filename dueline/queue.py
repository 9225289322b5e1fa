"""What Dueline knows of a queue."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSettings:
    """A queue's settings, as far as the protocol needs them.

    `retention` is how long after its due time a job may still be sent. The workers of a `precise` queue
    hold a message for the last fraction of a second, so its delays round down.
    """

    name: str
    partitions: int
    retention: timedelta
    precise: bool = False
