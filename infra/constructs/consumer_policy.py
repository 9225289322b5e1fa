"""The IAM policy of the workers of one queue."""

from collections.abc import Sequence

from aws_cdk.aws_iam import ManagedPolicy, PolicyStatement
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.names import Names
from dueline.model.queue_settings import QueueSettings
from infra.arns import Arns
from infra.constructs.payloads_bucket import keys_of_queue
from infra.grants import allow, allow_on_rows
from infra.nag import acknowledge_wildcard

_RECEIVE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
_READ = ("dynamodb:BatchGetItem", "dynamodb:GetItem")
# What Powertools' Idempotency asks of its table.
_NOTE = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")


class ConsumerPolicy(Construct):
    """A managed policy that allows to find one queue, to process its messages and to ask which were cancelled.

    And to read offloaded payloads, to ask whether the queue is paused, to take slots of its rate and locks of its
    schedules, to write the outcomes of its jobs if it tracks them and the notes of `once`, and to move failed jobs into
    the queue's dead-letter queue. What may be written has partition keys of its own: whoever may write a row of one may
    write all.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        names: Names,
        queue: QueueSettings,
        levels: Sequence[IQueue],
        dead_letters: IQueue,
    ) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=names)
        payloads = arns.payloads(keys_of_queue(queue.name))
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.consumer_policy(queue.name),
            description=f"Find queue {queue.name}, work off its messages, and ask which of its jobs were cancelled.",
            statements=[
                allow(*_RECEIVE, on=[level.queue_arn for level in levels]),
                allow("sqs:SendMessage", on=[dead_letters.queue_arn]),
                allow("ssm:GetParameter", on=[arns.parameter(names.queue_parameter(queue.name))]),
                *_row_grants(queue, arns),
                allow("s3:GetObject", on=[payloads]),
            ],
        )
        acknowledge_wildcard(policy, payloads, reason="The payloads of one queue's jobs, whose ids end their keys.")


def _row_grants(queue: QueueSettings, arns: Arns) -> list[PolicyStatement]:
    statements = [
        allow_on_rows(*_READ, table=arns.table, keys=[f"{queue.name}#*"]),
        allow_on_rows(*_READ, table=arns.state, keys=[f"{queue.name}#control"]),
        allow_on_rows("dynamodb:UpdateItem", table=arns.state, keys=[f"{queue.name}#rate", f"{queue.name}#runs"]),
        allow_on_rows(*_NOTE, table=arns.once, keys=[f"{queue.name}#*"]),
    ]
    if queue.track:
        statements.append(allow_on_rows("dynamodb:PutItem", table=arns.table, keys=[f"{queue.name}#outcome#*"]))
    return statements
