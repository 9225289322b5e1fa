"""What Dueline knows of a queue."""

from dataclasses import dataclass
from datetime import timedelta

from dueline.errors import QueueNotFound
from dueline.model.job import Partition


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSettings:
    """A queue's settings, as far as the protocol needs them.

    `retention` is how long after its due time a job may still be sent. The workers of a `precise` queue
    hold a message until it is due, so its delays round down. Its jobs have priorities from 1, the
    most urgent, to `priorities`, and each of these levels is an SQS queue of its own. If it is to `track` its jobs,
    their workers note what became of them, and look-ups tell it.
    """

    name: str
    partitions: int
    retention: timedelta
    precise: bool = False
    priorities: int = 1
    track: bool = False

    def declares(self, partition: Partition) -> bool:
        """Tell whether a partition of the queue is one of those that queues.yaml gives it now."""
        return partition.number < self.partitions


def not_there(queue: QueueSettings, *, priority: int = 1) -> QueueNotFound:
    """Return the error that tells of a missing SQS queue, the queue's own or that of a further priority."""
    what = f"queue {queue.name!r}" if priority == 1 else f"priority {priority} of queue {queue.name!r}"
    return QueueNotFound(f"{what} is not there yet, or was deleted")
