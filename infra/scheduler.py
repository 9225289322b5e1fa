"""What EventBridge Scheduler needs to fire ticks."""

from aws_cdk import Aws, RemovalPolicy
from aws_cdk.aws_iam import PolicyDocument, Role, ServicePrincipal
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_scheduler import CfnScheduleGroup
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.names import Names
from infra.function import allow


class Scheduler(Construct):
    """The one role and the one group of all the schedules."""

    def __init__(self, scope: Construct, id: str, *, names: Names, tick: IFunction, dead_letter_queue: IQueue) -> None:
        super().__init__(scope, id)
        trusted = ServicePrincipal(
            "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        )
        statements = [
            allow("lambda:InvokeFunction", on=[tick.function_arn]),
            allow("sqs:SendMessage", on=[dead_letter_queue.queue_arn]),
        ]
        Role(
            self,
            "Role",
            role_name=names.scheduler_role,
            assumed_by=trusted,
            inline_policies={"grants": PolicyDocument(statements=statements)},
        )
        # Deleting a group deletes the schedules in it.
        group = CfnScheduleGroup(self, "Group", name=names.schedule_group)
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
