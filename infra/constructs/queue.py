"""An SQS queue, encrypted and kept when its stack is deleted."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk.aws_sqs import DeadLetterQueue, Queue, QueueEncryption
from constructs import Construct

LONGEST_RETENTION_DAYS = 14


class DurableQueue(Queue):
    """An encrypted queue that answers to TLS only and outlives its stack.

    Deleting an SQS queue destroys what is in it. A failed first deploy still takes it away.
    A message in a dead-letter queue keeps its first enqueue time, hence the longest retention by default.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        visibility_timeout: int = 30,
        retention_days: int = LONGEST_RETENTION_DAYS,
        dead_letter_queue: DeadLetterQueue | None = None,
    ) -> None:
        super().__init__(
            scope,
            id,
            queue_name=name,
            visibility_timeout=Duration.seconds(visibility_timeout),
            retention_period=Duration.days(retention_days),
            dead_letter_queue=dead_letter_queue,
            encryption=QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
