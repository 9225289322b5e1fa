"""The stack of one queue."""

from aws_cdk import Stack
from aws_cdk.aws_sns import Topic
from aws_cdk.aws_sqs import DeadLetterQueue, IQueue
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from dueline.config import registry
from dueline.config.deployment import Deployment
from dueline.queue import QueueSettings
from infra.alarms import Alarms
from infra.arns import Arns
from infra.consumer import ConsumerPolicy
from infra.operator import OperatorPolicy
from infra.producer import ProducerPolicy
from infra.queue import DurableQueue
from infra.schedules import Schedules


class QueueStack(Stack):
    """A queue with its dead-letter queue, schedules, alarms, policies to attach and parameter for clients."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, queue: QueueSettings) -> None:
        super().__init__(scope, id, description=f"Dueline: the queue {queue.name}.")
        names, settings = deployment.names, deployment.queues[queue.name]
        dead_letters = DurableQueue(self, "DeadLetterQueue", name=names.queue_dlq(queue.name))
        own = DurableQueue(
            self,
            "Queue",
            name=names.queue(queue.name),
            visibility_timeout=settings.visibility_timeout,
            retention_days=settings.message_retention_days,
            dead_letter_queue=DeadLetterQueue(queue=dead_letters, max_receive_count=settings.max_receives),
        )
        schedules = Schedules(self, "Schedules", names=names, queue=queue.name, partitions=queue.partitions)
        # A tick parks the jobs of a queue that is not there, and jobs of a partition without a tick are lost.
        schedules.node.add_dependency(own)
        self._parameter(names.queue_parameter(queue.name), own, queue).node.add_dependency(schedules)
        ProducerPolicy(self, "Producer", names=names, queue=queue.name)
        ConsumerPolicy(self, "Consumer", names=names, queue=queue.name, own=own)
        OperatorPolicy(self, "Operator", names=names, queue=queue.name, own=own, dead_letters=dead_letters)
        self._add_alarms(deployment, dead_letters, queue)

    def _parameter(self, name: str, queue: IQueue, settings: QueueSettings) -> StringParameter:
        """Publish the queue to clients."""
        value = self.to_json_string({"url": queue.queue_url, **registry.settings_of(settings)})
        return StringParameter(self, "Parameter", parameter_name=name, string_value=value)

    def _add_alarms(self, deployment: Deployment, dead_letters: IQueue, queue: QueueSettings) -> None:
        topic = Topic.from_topic_arn(self, "AlarmTopic", Arns(self, names=deployment.names).alarms)
        alarms = Alarms(self, "Alarms", topic=topic)
        alarms.on_dead_letters(
            "DeadLetters", dead_letters, what=f"Jobs of queue {queue.name} failed as often as they may"
        )
        alarms.on_lateness("Lateness", deployment=deployment.name, queue=queue.name)
        alarms.on_missing_ticks(
            "MissingTicks", deployment=deployment.name, queue=queue.name, partitions=queue.partitions
        )
