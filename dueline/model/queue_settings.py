"""The settings of a queue."""

from dataclasses import dataclass
from datetime import timedelta

from dueline.errors import QueueNotFound
from dueline.model.job import Partition

# Jobs a second that one partition carries, with rows of up to 1 KB: half of what it sustains, so that an hour's backlog
# is made up for within another. Source: docs/benchmarks.md, "Scale, by simulation".
JOBS_PER_PARTITION = 500
# Each is a resource in the queue's stack, and CloudFormation takes 500 resources a stack.
MOST_PARTITIONS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSettings:
    """The settings of a queue that scheduling and look-ups need.

    `retention` is how long after its due time a job may still be sent. The workers of a `precise` queue hold a message
    until it is due, so its delays round down. Its jobs have priorities from 1, the most urgent, to `priorities`; each
    priority has an SQS queue of its own. If it is set to `track` its jobs, workers note their outcomes, which look-ups
    return.
    """

    name: str
    partitions: int
    retention: timedelta
    precise: bool = False
    priorities: int = 1
    track: bool = False

    def declares(self, partition: Partition) -> bool:
        """Tell whether queues.yaml declares this partition of the queue now."""
        return partition.number < self.partitions

    def all_partitions(self) -> list[Partition]:
        """Return the partitions that the queue has now."""
        return [Partition(queue=self.name, number=number) for number in range(self.partitions)]


# Of planning jobs, which plan the runs of schedules: Dueline's own queue, which no team may declare.
PLANNER = QueueSettings(name="dueline-planner", partitions=1, retention=timedelta(days=7))


def not_there(queue: QueueSettings, *, priority: int = 1) -> QueueNotFound:
    """Return the error for a queue whose SQS queue is missing, or that of one of its priorities."""
    what = f"queue {queue.name!r}" if priority == 1 else f"priority {priority} of queue {queue.name!r}"
    return QueueNotFound(f"{what} has no SQS queue: it is not deployed yet, or was deleted")
