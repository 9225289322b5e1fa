"""The tick function, which hands due jobs to their queues, and the dead-letter queues for what fails."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.function import CoreFunction
from dueline.cdk.constructs.schedules import add_schedule
from dueline.cdk.constructs.storage import DurableQueue
from dueline.cdk.grants import allow
from dueline.cdk.nag import acknowledge
from dueline.config.deployment import Deployment
from dueline.config.environment import TickSettings
from dueline.config.names import Names

# A tick with much to send goes on into the next minutes.
_TIMEOUT = 300
_OF_JOBS = ("BatchGetItem", "BatchWriteItem", "Query", "UpdateItem")


class Tick(Construct):
    """The tick, with the dead-letter queue of its invocations and that of the jobs it must park."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id)
        names = deployment.names
        self.dead_letter_queue = DurableQueue(self, "DeadLetterQueue", name=names.tick_dlq, deployment=deployment)
        self.dispatch_dead_letter_queue = DurableQueue(
            self, "DispatchDeadLetterQueue", name=names.dispatch_dlq, deployment=deployment
        )
        own, parked = self.dead_letter_queue, self.dispatch_dead_letter_queue
        acknowledge(own, "SQS3", reason="The dead-letter queue of Scheduler and of async invocations.")
        acknowledge(parked, "SQS3", reason="The dead-letter queue of jobs that a function parks.")
        tick = self._function(deployment)
        self.function, self.live = tick.function, tick.live
        # By default Lambda keeps throttled ticks for six hours, and the next minute brings a new one.
        self.live.configure_async_invoke(
            max_event_age=Duration.seconds(120), retry_attempts=1, on_failure=SqsDestination(self.dead_letter_queue)
        )

    def _function(self, deployment: Deployment) -> CoreFunction:
        arns = Arns(self, names=deployment.names)
        settings = TickSettings(
            deployment=deployment.name,
            queue_urls=arns.queue_urls,
            tick_period=deployment.tick_period,
            lookahead=deployment.lookahead,
            lease=deployment.lease,
        )
        return CoreFunction(
            self,
            "Tick",
            name="tick",
            deployment=deployment,
            timeout=_TIMEOUT,
            environment=settings.to_env(),
            reserved_concurrency=deployment.tick_reserved_concurrency,
            statements=self._statements(arns),
        )

    def _statements(self, arns: Arns) -> list[PolicyStatement]:
        return [
            # The update of a cancellation changes nothing: it reads what a move may have put.
            allow(*(f"dynamodb:{action}" for action in _OF_JOBS), on=[arns.table]),
            allow("dynamodb:BatchGetItem", "dynamodb:UpdateItem", on=[arns.state]),
            allow("sqs:SendMessage", on=[arns.teams_queues, self.dispatch_dead_letter_queue.queue_arn]),
            allow("sqs:SendMessage", on=[self.dead_letter_queue.queue_arn]),
        ]


class TickSchedules(Construct):
    """The schedules of a queue's ticks, one a partition.

    A row without a tick is lost at its TTL, so a schedule outlives its partition and its queue.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, queue: str, partitions: int) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=names)
        for partition in range(partitions):
            add_schedule(
                self,
                f"Partition{partition}",
                name=names.schedule(queue, partition),
                group=names.schedule_group,
                rate="1 minute",
                function=arns.live("tick"),
                event={"queue": queue, "partition": partition},
                role=arns.scheduler_role,
                dead_letters=arns.queue(names.tick_dlq),
            ).apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
