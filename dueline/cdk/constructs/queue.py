"""An SQS queue, encrypted and kept when its stack is deleted."""

from collections.abc import Sequence
from typing import Any, cast

from aws_cdk import Duration, RemovalPolicy
from aws_cdk.aws_sqs import CfnQueue, DeadLetterQueue, Queue, QueueEncryption
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.grants import key_of
from dueline.config.deployment import Deployment

LONGEST_RETENTION_DAYS = 14


class DurableQueue(Queue):
    """An encrypted queue that answers to TLS only and outlives its stack.

    Deleting an SQS queue destroys what is in it. A failed first deploy still takes it away.
    A message in a dead-letter queue keeps its first enqueue time, hence the longest retention by default.
    No queue may have it as its dead-letter queue but those in `redriven_from`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        deployment: Deployment,
        visibility_timeout: int = 30,
        retention_days: int = LONGEST_RETENTION_DAYS,
        dead_letter_queue: DeadLetterQueue | None = None,
        redriven_from: Sequence[str] = (),
    ) -> None:
        key = key_of(scope, id, deployment=deployment)
        super().__init__(
            scope,
            id,
            queue_name=name,
            visibility_timeout=Duration.seconds(visibility_timeout),
            retention_period=Duration.days(retention_days),
            dead_letter_queue=dead_letter_queue,
            encryption=QueueEncryption.KMS if key else QueueEncryption.SQS_MANAGED,
            encryption_master_key=key,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        cast(CfnQueue, self.node.default_child).redrive_allow_policy = self._allowed(deployment, redriven_from)

    def _allowed(self, deployment: Deployment, queues: Sequence[str]) -> dict[str, Any]:
        """Let these queues have this one as their dead-letter queue, by names: they need it before they are there."""
        if not queues:
            return {"redrivePermission": "denyAll"}
        arns = Arns(self, names=deployment.names)
        return {"redrivePermission": "byQueue", "sourceQueueArns": [arns.queue(name) for name in queues]}
