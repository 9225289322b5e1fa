"""The group of the ticks' schedules, and the role of all schedules."""

from aws_cdk import Aws, RemovalPolicy
from aws_cdk.aws_iam import Role, ServicePrincipal
from aws_cdk.aws_scheduler import CfnScheduleGroup
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.arns import Arns


class ScheduleGroup(Construct):
    """The group of the ticks' schedules, and the role of all, which Scheduler has for the deployment's groups alone.

    What the role may do is added last, by `Invocations`.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id)
        names = deployment.names
        arns = Arns(self, names=names)
        # Scheduler passes the group of a schedule:
        # https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
        groups = [arns.schedule_group(group) for group in (names.schedule_group, names.watch_group)]
        source = {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": groups}
        trusted = ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": source})
        self.role = Role(self, "Role", role_name=names.scheduler_role, assumed_by=trusted)
        # Deleting a group deletes the schedules in it.
        group = CfnScheduleGroup(self, "Group", name=names.schedule_group)
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
