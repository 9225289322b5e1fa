"""The IAM policy of the workers of a queue, or of those of a group."""

from aws_cdk.aws_iam import ManagedPolicy, PolicyStatement
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.arns import Arns
from infra.constructs.payloads_bucket import keys_of_queue
from infra.encryption import use_of_key
from infra.grants import allow, allow_on_rows
from infra.nag import acknowledge_wildcard
from infra.policy_scope import PolicyScope

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

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, of: PolicyScope) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=deployment.names)
        payloads = [arns.payloads(keys_of_queue(queue.name)) for queue in of.queues]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=of.policy("consumer"),
            description=f"Find {of}, work off its messages, and ask which of its jobs were cancelled.",
            statements=[
                allow(*_RECEIVE, on=of.levels(arns)),
                allow("sqs:SendMessage", on=of.dead_letters(arns)),
                allow("ssm:GetParameter", on=of.parameters(arns)),
                *_row_grants(of, arns),
                allow("s3:GetObject", on=payloads),
                *use_of_key(self, "dynamodb", "s3", "sqs", deployment=deployment),
            ],
        )
        for pattern in payloads:
            acknowledge_wildcard(policy, pattern, reason="The payloads of one queue's jobs, whose ids end their keys.")


def _row_grants(of: PolicyScope, arns: Arns) -> list[PolicyStatement]:
    statements = [
        allow_on_rows(*_READ, table=arns.table, keys=of.rows("*")),
        allow_on_rows(*_READ, table=arns.state, keys=of.rows("control")),
        allow_on_rows("dynamodb:UpdateItem", table=arns.state, keys=of.rows("rate", "runs")),
        allow_on_rows(*_NOTE, table=arns.once, keys=of.rows("*")),
    ]
    if tracked := [f"{queue.name}#outcome#*" for queue in of.queues if queue.track]:
        statements.append(allow_on_rows("dynamodb:PutItem", table=arns.table, keys=tracked))
    return statements
