"""The schedules of the watches, which look around whatever happened to the queues' stacks."""

import json

from aws_cdk.aws_iam import IRole
from aws_cdk.aws_lambda import IAlias
from aws_cdk.aws_scheduler import CfnSchedule, CfnScheduleGroup
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config.names import Names

WATCH_MINUTES = 5
PLANNER_WATCH_HOURS = 1


class Watches(Construct):
    """The tick looks for partitions without a tick, the planner for schedules that stand still.

    In a group of their own: in that of the ticks, each schedule is a partition's.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        names: Names,
        role: IRole,
        tick: IAlias,
        planner: IAlias,
        dead_letter_queue: IQueue,
    ) -> None:
        super().__init__(scope, id)
        self._role, self._dead_letter_queue = role, dead_letter_queue
        self._group = CfnScheduleGroup(self, "Group", name=names.watch_group)
        self._watch("Ticks", tick, name=names.watch, rate=f"{WATCH_MINUTES} minutes")
        self._watch("Schedules", planner, name=names.planner_watch, rate=f"{PLANNER_WATCH_HOURS} hour")

    def _watch(self, id: str, function: IAlias, *, name: str, rate: str) -> None:
        target = CfnSchedule.TargetProperty(
            arn=function.function_arn,
            role_arn=self._role.role_arn,
            input=json.dumps({"watch": True}),
            retry_policy=CfnSchedule.RetryPolicyProperty(maximum_event_age_in_seconds=120, maximum_retry_attempts=2),
            dead_letter_config=CfnSchedule.DeadLetterConfigProperty(arn=self._dead_letter_queue.queue_arn),
        )
        CfnSchedule(
            self,
            id,
            name=name,
            group_name=self._group.ref,
            schedule_expression=f"rate({rate})",
            flexible_time_window=CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=target,
        )
