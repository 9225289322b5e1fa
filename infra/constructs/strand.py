"""What keeps a deployment from stranding jobs: the function that looks, and the resources by which a stack asks it."""

from typing import Any

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_lambda import Code
from constructs import Construct, IConstruct

from dueline.config.deployment import Deployment
from dueline.config.names import STRAND_GUARD
from dueline.config.settings import StrandSettings
from dueline.model.queue_settings import QueueSettings
from infra.arns import Arns
from infra.constructs.function import CoreFunction
from infra.encryption import use_of_key
from infra.grants import allow
from infra.nag import acknowledge_wildcard

CONTEXT = "strand"
_TIMEOUT = 60
# Lambda tries again what failed, after one minute and after two more.
_WAITS = Duration.minutes(10)


class StrandFunction(Construct):
    """The function that tells whether a change of a queue would strand jobs. It reads, and may do nothing else."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment, code: Code) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=deployment.names)
        core = CoreFunction(
            self,
            "Strand",
            name="strand",
            deployment=deployment,
            code=code,
            timeout=_TIMEOUT,
            environment=StrandSettings(deployment=deployment.name, queue_urls=arns.queue_urls).to_env(),
            statements=[*_statements(arns), *use_of_key(self, "dynamodb", deployment=deployment)],
        )
        acknowledge_wildcard(
            core,
            arns.queue_stacks,
            reason="The stacks of this deployment's queues, whose ids CloudFormation makes.",
        )
        self.function = core.function


class StrandGuard(Construct):
    """Refuses to delete a queue, to lower its partitions or levels, or how long SQS keeps messages, if jobs are there.

    CloudFormation updates in the order of dependencies, and deletes in the opposite one. So there are two resources:
    all others come after one, and before the other. With the context `strand=yes`, nothing is refused.
    """

    def __init__(self, stack: Stack, id: str, *, deployment: Deployment, queue: QueueSettings) -> None:
        super().__init__(stack, id)
        others = [child for child in stack.node.children if child is not self]
        declared = {
            "Queue": queue.name,
            "Partitions": queue.partitions,
            "Priorities": queue.priorities,
            "MessageRetentionDays": deployment.queues[queue.name].message_retention_days,
            "Strand": _is_overridden(self),
        }
        function = Arns(self, names=deployment.names).live("strand")
        before, after = (self._resource(function, {**declared, "When": when}) for when in ("before", "after"))
        for other in others:
            other.node.add_dependency(before)
        after.node.add_dependency(*others)

    def _resource(self, function: str, properties: dict[str, Any]) -> CustomResource:
        return CustomResource(
            self,
            str(properties["When"]).capitalize(),
            service_token=function,
            service_timeout=_WAITS,
            resource_type=STRAND_GUARD,
            properties=properties,
        )


def _is_overridden(scope: IConstruct) -> str:
    given = scope.node.try_get_context(CONTEXT)
    if given not in (None, "yes", "no"):
        raise ValueError(f"context {CONTEXT} is {given!r}: it must be yes or no")
    return given or "no"


def _statements(arns: Arns) -> list[PolicyStatement]:
    return [
        # A state of before is among the jobs.
        allow("dynamodb:BatchGetItem", "dynamodb:Query", on=[arns.table]),
        allow("dynamodb:BatchGetItem", "dynamodb:Query", on=[arns.state]),
        allow("sqs:GetQueueAttributes", on=[arns.teams_queues]),
        allow("cloudformation:DescribeStacks", on=[arns.queue_stacks]),
    ]
