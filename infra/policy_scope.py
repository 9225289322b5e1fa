"""The queues that a policy is of: one, or those of a group."""

from collections.abc import Sequence
from dataclasses import dataclass

from dueline.config.names import Names
from dueline.core.queue_settings import QueueSettings
from infra.arns import Arns


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyScope:
    """One queue, or several and the group that queues.yaml has of them."""

    names: Names
    queues: Sequence[QueueSettings]
    group: str | None = None

    def __str__(self) -> str:
        return f"group {self.group}" if self.group else f"queue {self.queues[0].name}"

    def policy(self, kind: str) -> str:
        """Return the name of the policy of a kind, such as `producer`."""
        if self.group:
            return self.names.group_policy(self.group, kind)
        return self.names.policy(self.queues[0].name, kind)

    def levels(self, arns: Arns) -> list[str]:
        """Return the SQS queues of all priorities."""
        return [
            arns.queue(self.names.queue(queue.name, priority))
            for queue in self.queues
            for priority in range(1, queue.priorities + 1)
        ]

    def dead_letters(self, arns: Arns) -> list[str]:
        return [arns.queue(self.names.queue_dlq(queue.name)) for queue in self.queues]

    def parameters(self, arns: Arns) -> list[str]:
        """Return what the queues publish of themselves."""
        return [arns.parameter(self.names.queue_parameter(queue.name)) for queue in self.queues]

    def rows(self, *rest: str) -> list[str]:
        """Return the partition keys that begin with a queue's name and `#`, and go on with any of some patterns."""
        return [f"{queue.name}#{each}" for queue in self.queues for each in rest]
