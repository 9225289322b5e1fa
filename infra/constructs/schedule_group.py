"""The group and role of EventBridge Scheduler's schedules, and the schedule of the watch."""

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


class ScheduleGroup(Construct):
    """The role and the group that all schedules share, and the schedule of the watch for partitions without a tick."""

    def __init__(self, scope: Construct, id: str, *, names: Names, tick: IFunction, dead_letter_queue: IQueue) -> None:
        super().__init__(scope, id)
        trusted = ServicePrincipal(
            "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        )
        statements = [
            allow("lambda:InvokeFunction", on=[tick.function_arn]),
            allow("sqs:SendMessage", on=[dead_letter_queue.queue_arn]),
        ]
        role = Role(
            self,
            "Role",
            role_name=names.scheduler_role,
            assumed_by=trusted,
            inline_policies={"grants": PolicyDocument(statements=statements)},
        )
        # Deleting a group deletes the schedules in it.
        group = CfnScheduleGroup(self, "Group", name=names.schedule_group)
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        self._watch(names, tick, role, dead_letter_queue)

    def _watch(self, names: Names, tick: IFunction, role: Role, dead_letter_queue: IQueue) -> None:
        """Have the tick function look for partitions without a tick, whatever happened to the queues' stacks."""
        target = CfnSchedule.TargetProperty(
            arn=tick.function_arn,
            role_arn=role.role_arn,
            input=json.dumps({"watch": True}),
            retry_policy=CfnSchedule.RetryPolicyProperty(maximum_event_age_in_seconds=120, maximum_retry_attempts=2),
            dead_letter_config=CfnSchedule.DeadLetterConfigProperty(arn=dead_letter_queue.queue_arn),
        )
        # Not of the group, in which each schedule is a partition's.
        CfnSchedule(
            self,
            "Watch",
            name=names.watch,
            schedule_expression=f"rate({WATCH_MINUTES} minutes)",
            flexible_time_window=CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=target,
        )
