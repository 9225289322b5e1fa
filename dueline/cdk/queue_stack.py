"""The stack of one queue."""

import json
from collections.abc import Sequence
from typing import Any, cast

from aws_cdk import Annotations, Stack
from aws_cdk.aws_iam import CfnManagedPolicy, ManagedPolicy
from aws_cdk.aws_sqs import DeadLetterQueue, IQueue
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.cdk.constructs.alarm_topic import topics_of_queue
from dueline.cdk.constructs.alarms import Alarms
from dueline.cdk.constructs.dashboards import QueueDashboard
from dueline.cdk.constructs.policies import PolicyScope, add_policies
from dueline.cdk.constructs.queue import DurableQueue
from dueline.cdk.constructs.tick import TickSchedules
from dueline.cdk.nag import spelled
from dueline.config import ConfigurationError
from dueline.config.deployment import Deployment
from dueline.config.registry import published
from dueline.core.job import MAX_PRIORITY
from dueline.core.queue_settings import JOBS_PER_PARTITION, QueueSettings


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
        of = PolicyScope(names=names, queues=[queue])
        add_policies(self, deployment=deployment, of=of)
        topics = topics_of_queue(self, deployment=deployment, queue=queue.name)
        if deployment.queues[queue.name].metrics == "queue":
            Alarms(self, "Alarms", topics=topics, deployment=deployment).on_queue(queue.name)
        if deployment.dashboards == "all":
            QueueDashboard(
                self, "Overview", deployment=deployment, queue=queue.name, levels=levels, dead_letters=dead_letters
            )
        self._publish(deployment, queue, levels, dead_letters)
        self._warn_of_too_few_partitions(deployment, queue.name)

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
        settings = published(work, expected_rate=deployment.queues[queue.name].expected_rate)
        name = deployment.names.queue_parameter(queue.name)
        parameter = StringParameter(self, "Parameter", parameter_name=name, string_value=self.to_json_string(settings))
        parameter.node.add_dependency(*others)

    def _warn_of_too_few_partitions(self, deployment: Deployment, queue: str) -> None:
        settings = deployment.queues[queue]
        if settings.partitions >= settings.partitions_needed:
            return
        text = (
            f"queues.{queue}.partitions is {settings.partitions}: for an expected_rate of {settings.expected_rate:,}"
            f" jobs a second it should be at least {settings.partitions_needed}, {JOBS_PER_PARTITION} for each"
        )
        Annotations.of(self).add_warning_v2("dueline:partitions", text)


# IAM's, of a managed policy.
MOST_CHARACTERS = 6_144
# As long as they are at most.
_REFERENCES = {
    "<AWS::Partition>": "aws",
    "<AWS::Region>": "ap-southeast-99",
    "<AWS::AccountId>": "1" * 12,
    "<HttpApiId>": "a" * 10,
}


class GroupsStack(Stack):
    """Policies to attach like those of a queue, each for all queues of a group: a role may have ten."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, **options: Any) -> None:
        description = "Dueline: the policies of groups of queues."
        super().__init__(scope, id, description=description, suppress_template_indentation=True, **options)
        by_name = {queue.name: queue for queue in deployment.queue_settings()}
        for group, queues in deployment.groups.items():
            place = Construct(self, f"Group-{group}")
            of = PolicyScope(names=deployment.names, queues=[by_name[queue] for queue in queues], group=group)
            for policy in add_policies(place, deployment=deployment, of=of):
                self._check(policy, group)

    def _check(self, policy: ManagedPolicy, group: str) -> None:
        """Raise ConfigurationError for a policy that IAM would refuse, in the middle of a deployment."""
        made = cast(CfnManagedPolicy, policy.node.default_child)
        document = json.dumps(_spelled(self.resolve(made.policy_document)), separators=(",", ":"))
        if len(document) > MOST_CHARACTERS:
            raise ConfigurationError(
                f"groups.{group} has too many queues: its policy {made.managed_policy_name} takes {len(document):,}"
                f" characters, and IAM's limit is {MOST_CHARACTERS:,}; make two groups of it"
            )


def _spelled(value: object) -> object:
    """Return a document with the references in it as long as what becomes of them."""
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if isinstance(value, dict) and not value.keys() & {"Ref", "Fn::Join"}:
        return {name: _spelled(each) for name, each in value.items()}
    text = spelled(value)
    for reference, meant in _REFERENCES.items():
        text = text.replace(reference, meant)
    return text
