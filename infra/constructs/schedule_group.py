"""The group of the ticks' schedules, and the role of all schedules."""

from aws_cdk import Aws, RemovalPolicy
from aws_cdk.aws_iam import PolicyDocument, Role, ServicePrincipal
from aws_cdk.aws_lambda import IAlias
from aws_cdk.aws_scheduler import CfnScheduleGroup
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.arns import Arns
from infra.encryption import use_of_key
from infra.grants import allow


class ScheduleGroup(Construct):
    """The group of the ticks' schedules, and the role of all: which Scheduler has for the deployment's groups alone."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        tick: IAlias,
        planner: IAlias,
        dead_letter_queue: IQueue,
    ) -> None:
        super().__init__(scope, id)
        names = deployment.names
        arns = Arns(self, names=names)
        # Of a schedule, Scheduler tells its group:
        # https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
        groups = [arns.schedule_group(group) for group in (names.schedule_group, names.watch_group)]
        source = {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": groups}
        trusted = ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": source})
        statements = [
            # The function itself, too: schedules of before there was an alias outlive their queue.
            allow("lambda:InvokeFunction", on=[tick.function_arn, planner.function_arn, tick.lambda_.function_arn]),
            allow("sqs:SendMessage", on=[dead_letter_queue.queue_arn]),
            *use_of_key(self, "sqs", deployment=deployment),
        ]
        self.role = Role(
            self,
            "Role",
            role_name=names.scheduler_role,
            assumed_by=trusted,
            inline_policies={"grants": PolicyDocument(statements=statements)},
        )
        # Deleting a group deletes the schedules in it.
        group = CfnScheduleGroup(self, "Group", name=names.schedule_group)
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
