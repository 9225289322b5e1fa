"""The EventBridge schedules that fire a queue's ticks."""

import json

from aws_cdk import RemovalPolicy
from aws_cdk.aws_scheduler import CfnSchedule
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns


class TickSchedules(Construct):
    """The schedules of a queue's ticks, one a partition.

    A row without a tick is lost at its TTL, so a schedule outlives its partition and its queue.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, queue: str, partitions: int) -> None:
        super().__init__(scope, id)
        self._names = names
        self._arns = Arns(self, names=names)
        for partition in range(partitions):
            self._schedule(queue, partition)

    def _schedule(self, queue: str, partition: int) -> None:
        CfnSchedule(
            self,
            f"Partition{partition}",
            name=self._names.schedule(queue, partition),
            group_name=self._names.schedule_group,
            schedule_expression="rate(1 minute)",
            flexible_time_window=CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=self._target({"queue": queue, "partition": partition}),
        ).apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)

    def _target(self, event: dict[str, str | int]) -> CfnSchedule.TargetProperty:
        return CfnSchedule.TargetProperty(
            arn=self._arns.live("tick"),
            role_arn=self._arns.scheduler_role,
            input=json.dumps(event),
            retry_policy=CfnSchedule.RetryPolicyProperty(maximum_event_age_in_seconds=120, maximum_retry_attempts=2),
            dead_letter_config=CfnSchedule.DeadLetterConfigProperty(arn=self._arns.queue(self._names.tick_dlq)),
        )
