"""What lets schedules and rules invoke the functions, which comes after the tables."""

from aws_cdk.aws_iam import CfnPolicy, IRole, PolicyDocument
from aws_cdk.aws_lambda import CfnPermission, IAlias
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.encryption import use_of_key
from infra.grants import allow


class Invocations(Construct):
    """The rights by which the schedules invoke the tick and the planner, and the rule at `rule` the TTL guard.

    All that comes after the tables. Without tables the functions would fail, and alarms would fire; and what comes
    after the tables must not fail, because the rollback of a first deployment cannot delete them. Until then the
    schedules and the rule fire in vain, and nothing counts that: the role may not reach its dead-letter queue either.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        role: IRole,
        functions: list[IAlias],
        dead_letter_queue: IQueue,
        guard: IAlias,
        rule: str,
    ) -> None:
        super().__init__(scope, id)
        statements = [
            allow("lambda:InvokeFunction", on=[function.function_arn for function in functions]),
            allow("sqs:SendMessage", on=[dead_letter_queue.queue_arn]),
            *use_of_key(self, "sqs", deployment=deployment),
        ]
        document = PolicyDocument(statements=statements)
        CfnPolicy(self, "Schedules", roles=[role.role_name], policy_name="grants", policy_document=document)
        CfnPermission(
            self,
            "Rule",
            action="lambda:InvokeFunction",
            function_name=guard.function_arn,
            principal="events.amazonaws.com",
            source_arn=rule,
        )
