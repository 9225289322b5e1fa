"""The group of the ticks' schedules, the planner's watch, and the rights of schedules and rules to invoke functions."""

import json
from collections.abc import Mapping

from aws_cdk import Aws, RemovalPolicy
from aws_cdk.aws_iam import CfnPolicy, IRole, PolicyDocument, Role, ServicePrincipal
from aws_cdk.aws_lambda import CfnPermission, IAlias
from aws_cdk.aws_scheduler import CfnSchedule, CfnScheduleGroup
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.grants import allow, with_use_of_key
from dueline.config.deployment import Deployment
from dueline.config.names import Names


def add_schedule(
    scope: Construct,
    id: str,
    *,
    name: str,
    group: str,
    rate: str,
    function: str,
    event: Mapping[str, str | int],
    role: str,
    dead_letters: str,
) -> CfnSchedule:
    """Add a schedule that invokes a function with an event; function, role and dead-letter queue by their ARNs."""
    target = CfnSchedule.TargetProperty(
        arn=function,
        role_arn=role,
        input=json.dumps(event),
        retry_policy=CfnSchedule.RetryPolicyProperty(maximum_event_age_in_seconds=120, maximum_retry_attempts=2),
        dead_letter_config=CfnSchedule.DeadLetterConfigProperty(arn=dead_letters),
    )
    return CfnSchedule(
        scope,
        id,
        name=name,
        group_name=group,
        schedule_expression=f"rate({rate})",
        flexible_time_window=CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
        target=target,
    )


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


class PlannerWatch(Construct):
    """The planner looks for schedules that stand still, whatever happened.

    In a group of its own: in that of the ticks, each schedule is a partition's.
    """

    def __init__(
        self, scope: Construct, id: str, *, names: Names, role: IRole, planner: IAlias, dead_letter_queue: IQueue
    ) -> None:
        super().__init__(scope, id)
        group = CfnScheduleGroup(self, "Group", name=names.watch_group)
        add_schedule(
            self,
            "Schedules",
            name=names.planner_watch,
            group=group.ref,
            rate="1 hour",
            function=planner.function_arn,
            event={"watch": True},
            role=role.role_arn,
            dead_letters=dead_letter_queue.queue_arn,
        )


class Invocations(Construct):
    """The rights by which the schedules invoke the tick and the planner, and the rule at `rule` the watch.

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
        watch: IAlias,
        rule: str,
    ) -> None:
        super().__init__(scope, id)
        statements = [
            allow("lambda:InvokeFunction", on=[function.function_arn for function in functions]),
            allow("sqs:SendMessage", on=[dead_letter_queue.queue_arn]),
        ]
        document = PolicyDocument(statements=with_use_of_key(self, statements, deployment=deployment))
        CfnPolicy(self, "Schedules", roles=[role.role_name], policy_name="grants", policy_document=document)
        CfnPermission(
            self,
            "Rule",
            action="lambda:InvokeFunction",
            function_name=watch.function_arn,
            principal="events.amazonaws.com",
            source_arn=rule,
        )
