"""The grant that lets people look after one queue."""

from collections.abc import Sequence

from aws_cdk.aws_iam import ManagedPolicy
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.names import Names
from infra.function import allow

_LOOK = ("sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage")
_REDRIVE = ("sqs:StartMessageMoveTask", "sqs:ListMessageMoveTasks", "sqs:CancelMessageMoveTask")


class OperatorPolicy(Construct):
    """A managed policy that allows to see how one queue is, and to put its dead letters back into it.

    What the queue's producers may do is in their policy; attach both.
    """

    def __init__(
        self, scope: Construct, id: str, *, names: Names, queue: str, levels: Sequence[IQueue], dead_letters: IQueue
    ) -> None:
        super().__init__(scope, id)
        ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.operator_policy(queue),
            description=f"See how queue {queue} is, and redrive its dead-letter queue.",
            statements=[
                allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=[level.queue_arn for level in levels]),
                allow(*_LOOK, *_REDRIVE, on=[dead_letters.queue_arn]),
            ],
        )
