"""The IAM policy of the services that write jobs of one queue into the table themselves."""

from collections.abc import Sequence

from aws_cdk.aws_iam import ManagedPolicy, PolicyStatement
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns
from infra.constructs.payloads_bucket import keys_of_queue
from infra.grants import allow, allow_on_rows
from infra.nag import acknowledge_wildcard

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

    def __init__(
        self, scope: Construct, id: str, *, names: Names, queue: str, levels: Sequence[IQueue], dead_letters: IQueue
    ) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=names)
        payloads = arns.payloads(keys_of_queue(queue))
        of_deployment = [arns.parameter(name) for name in (names.settings_parameter, names.schema_parameter)]
        found = [arns.parameter(name) for name in (names.queue_parameter(queue), names.api_url_parameter)]
        policy = ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=names.direct_policy(queue),
            # Never to be changed: that would replace the policy, whose name is taken.
            description=f"Schedule, look up and cancel jobs of queue {queue} without HTTP.",
            statements=[
                *_row_grants(queue, arns),
                allow("sqs:SendMessage", on=[level.queue_arn for level in levels]),
                allow("sqs:GetQueueAttributes", on=[each.queue_arn for each in (*levels, dead_letters)]),
                allow("s3:GetObject", "s3:PutObject", on=[payloads]),
                allow("ssm:GetParameter", on=[*found, *of_deployment]),
                allow("ssm:GetParameters", on=of_deployment),
            ],
        )
        acknowledge_wildcard(policy, payloads, reason="The payloads of one queue's jobs, whose ids end their keys.")


def _row_grants(queue: str, arns: Arns) -> list[PolicyStatement]:
    own, written = [f"{queue}#*"], [f"{queue}#{rest}" for rest in _WRITTEN]
    return [
        # The check is what a transaction asks of a fence, be it of before.
        allow_on_rows(*_READ, "dynamodb:ConditionCheckItem", "dynamodb:Query", table=arns.table, keys=own),
        allow_on_rows(*_WRITE, table=arns.table, keys=written),
        allow_on_rows(*_READ, "dynamodb:ConditionCheckItem", table=arns.state, keys=own),
    ]
