"""The IAM policy of the services that write jobs of a queue, or of those of a group, into the table themselves."""

from aws_cdk.aws_iam import ManagedPolicy, PolicyStatement
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.arns import Arns
from infra.constructs.payloads_bucket import keys_of_queue
from infra.encryption import use_of_key
from infra.grants import allow, allow_on_rows
from infra.nag import acknowledge_wildcard
from infra.policy_scope import PolicyScope

_READ = ("dynamodb:BatchGetItem", "dynamodb:GetItem")
_WRITE = ("dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
# What follows a queue's name and `#` in the keys of its partitions, 0 to 999, and of its idempotency keys' partitions.
# `control`, `rate` and `outcome#0` are longer.
_WRITTEN = ("?", "??", "???", "keys?", "keys??")


class DirectPolicy(Construct):
    """A managed policy that allows to schedule, look up, list and cancel jobs of one queue, without HTTP.

    It allows to write the rows of that queue's jobs, and nothing of what controls their way: fences, leases, pause and
    rate can be read alone. Not to send to the inbound queue, by which jobs reach any queue, nor to ask for others. What
    goes over HTTP is in the producer's policy; attach both where both are needed.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, of: PolicyScope) -> None:
        super().__init__(scope, id)
        names = deployment.names
        arns = Arns(self, names=names)
        payloads = [arns.payloads(keys_of_queue(queue.name)) for queue in of.queues]
        of_deployment = [arns.parameter(name) for name in (names.settings_parameter, names.schema_parameter)]
        found = [*of.parameters(arns), arns.parameter(names.api_url_parameter)]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=of.policy("direct"),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"Schedule, look up and cancel jobs of {of} without HTTP.",
            statements=[
                *_row_grants(of, arns),
                allow("sqs:GetQueueAttributes", "sqs:SendMessage", on=of.levels(arns)),
                allow("sqs:GetQueueAttributes", on=of.dead_letters(arns)),
                allow("s3:GetObject", "s3:PutObject", on=payloads),
                allow("ssm:GetParameter", on=[*found, *of_deployment]),
                allow("ssm:GetParameters", on=of_deployment),
                *use_of_key(self, "dynamodb", "s3", "sqs", deployment=deployment),
            ],
        )
        for pattern in payloads:
            acknowledge_wildcard(policy, pattern, reason="The payloads of one queue's jobs, whose ids end their keys.")


def _row_grants(of: PolicyScope, arns: Arns) -> list[PolicyStatement]:
    own = of.rows("*")
    return [
        # The check is what a transaction asks of a fence, be it of before.
        allow_on_rows(*_READ, "dynamodb:ConditionCheckItem", "dynamodb:Query", table=arns.table, keys=own),
        allow_on_rows(*_WRITE, table=arns.table, keys=of.rows(*_WRITTEN)),
        allow_on_rows(*_READ, "dynamodb:ConditionCheckItem", table=arns.state, keys=own),
    ]
