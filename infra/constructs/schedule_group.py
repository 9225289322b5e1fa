"""The group and role of EventBridge Scheduler's schedules, and the schedules of the watches."""

import json

from aws_cdk import Aws, RemovalPolicy
from aws_cdk.aws_iam import PolicyDocument, Role, ServicePrincipal
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_scheduler import CfnSchedule, CfnScheduleGroup
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.names import Names
from infra.grants import allow

WATCH_MINUTES = 5
PLANNER_WATCH_HOURS = 1


class ScheduleGroup(Construct):
    """The role and the group that all schedules share, and the schedules of the watches.

    The tick looks for partitions without a tick, the planner for schedules that stand still.
    """

    def __init__(
        self, scope: Construct, id: str, *, names: Names, tick: IFunction, planner: IFunction, dead_letter_queue: IQueue
    ) -> None:
        super().__init__(scope, id)
        self._dead_letter_queue = dead_letter_queue
        trusted = ServicePrincipal(
            "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        )
        statements = [
            allow("lambda:InvokeFunction", on=[tick.function_arn, planner.function_arn]),
            allow("sqs:SendMessage", on=[dead_letter_queue.queue_arn]),
        ]
        self._role = Role(
            self,
            "Role",
            role_name=names.scheduler_role,
            assumed_by=trusted,
            inline_policies={"grants": PolicyDocument(statements=statements)},
        )
        # Deleting a group deletes the schedules in it.
        group = CfnScheduleGroup(self, "Group", name=names.schedule_group)
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        self._watch("Watch", tick, name=names.watch, rate=f"{WATCH_MINUTES} minutes")
        self._watch("PlannerWatch", planner, name=names.planner_watch, rate=f"{PLANNER_WATCH_HOURS} hour")

    def _watch(self, id: str, function: IFunction, *, name: str, rate: str) -> None:
        """Have a function look around, whatever happened to the queues' stacks."""
        target = CfnSchedule.TargetProperty(
            arn=function.function_arn,
            role_arn=self._role.role_arn,
            input=json.dumps({"watch": True}),
            retry_policy=CfnSchedule.RetryPolicyProperty(maximum_event_age_in_seconds=120, maximum_retry_attempts=2),
            dead_letter_config=CfnSchedule.DeadLetterConfigProperty(arn=self._dead_letter_queue.queue_arn),
        )
        # Not of the group, in which each schedule is a partition's.
        CfnSchedule(
            self,
            id,
            name=name,
            schedule_expression=f"rate({rate})",
            flexible_time_window=CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=target,
        )
