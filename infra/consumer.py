"""The grant that lets a worker use one queue."""

from collections.abc import Sequence

from aws_cdk.aws_iam import ManagedPolicy, PolicyStatement
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns
from infra.function import allow
from infra.nag import acknowledge_wildcard
from infra.payloads import of_queue

_RECEIVE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")


class ConsumerPolicy(Construct):
    """A managed policy that allows to find one queue, to work off its messages and to ask which were cancelled.

    And to read what their pointers point to.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, queue: str, levels: Sequence[IQueue]) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=names)
        payloads = arns.payloads(of_queue(queue))
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.consumer_policy(queue),
            description=f"Find queue {queue}, work off its messages, and ask which of its jobs were cancelled.",
            statements=[
                allow(*_RECEIVE, on=[level.queue_arn for level in levels]),
                allow("ssm:GetParameter", on=[arns.parameter(names.queue_parameter(queue))]),
                _rows_of(queue, table=arns.table),
                allow("s3:GetObject", on=[payloads]),
            ],
        )
        acknowledge_wildcard(policy, payloads, reason="The payloads of one queue's jobs, whose ids end their keys.")


def _rows_of(queue: str, *, table: str) -> PolicyStatement:
    """Allow to read the rows of one queue.

    With the `#`, or `emails` would open `emails-vip`. A request that names no key has no leading keys, and all of
    none are like anything: hence the second condition.
    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
    """
    statement = allow("dynamodb:BatchGetItem", "dynamodb:GetItem", on=[table])
    statement.add_condition("ForAllValues:StringLike", {"dynamodb:LeadingKeys": [f"{queue}#*"]})
    statement.add_condition("Null", {"dynamodb:LeadingKeys": "false"})
    return statement
