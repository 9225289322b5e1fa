"""The stack of one queue."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk.aws_sqs import DeadLetterQueue, IQueue
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.cdk.constructs.alarm_topic import topics_of_queue
from dueline.cdk.constructs.alarms import Alarms
from dueline.cdk.constructs.policies import add_policies
from dueline.cdk.constructs.queue import DurableQueue
from dueline.cdk.constructs.tick import TickSchedules
from dueline.config.deployment import Deployment
from dueline.config.registry import published
from dueline.core.job import MAX_PRIORITY
from dueline.core.queue_settings import QueueSettings


class QueueStack(Stack):
    """A queue, its levels, dead-letter queue, schedules, policies to attach and parameter for clients."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, queue: QueueSettings, **options: Any
    ) -> None:
        description = f"Dueline: the queue {queue.name}."
        super().__init__(scope, id, description=description, suppress_template_indentation=True, **options)
        names = deployment.names
        dead_letters = self._dead_letters(deployment, queue.name)
        levels = [
            self._level(deployment, queue.name, priority, dead_letters) for priority in range(1, queue.priorities + 1)
        ]
        schedules = TickSchedules(self, "Schedules", names=names, queue=queue.name, partitions=queue.partitions)
        # A tick parks the jobs of a queue that does not exist, and jobs of a partition without a tick are lost.
        schedules.node.add_dependency(*levels)
        add_policies(self, deployment=deployment, queue=queue)
        topics = topics_of_queue(self, deployment=deployment, queue=queue.name)
        if deployment.queues[queue.name].metrics == "queue":
            Alarms(self, "Alarms", topics=topics, deployment=deployment).on_queue(queue.name)
        self._publish(deployment, queue, levels, dead_letters)

    def _dead_letters(self, deployment: Deployment, queue: str) -> DurableQueue:
        names = deployment.names
        # Those of all levels that there may be: one that is given up keeps its dead-letter queue.
        levels = [names.queue(queue, priority) for priority in range(1, MAX_PRIORITY + 1)]
        name = names.queue_dlq(queue)
        return DurableQueue(self, "DeadLetterQueue", name=name, deployment=deployment, redriven_from=levels)

    def _level(self, deployment: Deployment, queue: str, priority: int, dead_letters: IQueue) -> DurableQueue:
        """Add the SQS queue of one priority."""
        settings = deployment.queues[queue]
        return DurableQueue(
            self,
            "Queue" if priority == 1 else f"Level{priority}",
            name=deployment.names.queue(queue, priority),
            deployment=deployment,
            visibility_timeout=settings.visibility_timeout,
            retention_days=settings.message_retention_days,
            dead_letter_queue=DeadLetterQueue(queue=dead_letters, max_receive_count=settings.receives),
        )

    def _publish(
        self, deployment: Deployment, queue: QueueSettings, levels: Sequence[IQueue], dead_letters: IQueue
    ) -> None:
        """Publish the queue to clients, workers and functions: the URLs of its levels, the most urgent first, and its
        settings.

        Last of all: who reads of a partition gives it jobs, and if anything failed after that, the rollback would
        take the partition's new schedule away again.
        """
        others = list(self.node.children)
        urls = [level.queue_url for level in levels]
        work = deployment.work_settings(queue, urls=urls, dead_letters=dead_letters.queue_url)
        settings = published(work)
        name = deployment.names.queue_parameter(queue.name)
        parameter = StringParameter(self, "Parameter", parameter_name=name, string_value=self.to_json_string(settings))
        parameter.node.add_dependency(*others)
