"""The two functions that read a queue of their own: ingest, and the planner of schedules."""

from typing import cast

from aws_cdk import Duration
from aws_cdk.aws_iam import AnyPrincipal, Effect, PolicyStatement
from aws_cdk.aws_lambda import CfnFunction, Function
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from aws_cdk.aws_sqs import DeadLetterQueue
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.function import CoreFunction
from dueline.cdk.constructs.storage import DurableQueue
from dueline.cdk.grants import WATCH_ROWS, allow, allow_on_rows
from dueline.config.deployment import Deployment
from dueline.config.environment import LONGEST_HIDDEN_SECONDS, PeriodSettings, Settings
from dueline.core.queue_settings import PLANNER

_TIMEOUT = 30
_WINDOW = 1
# What Lambda requires of a queue that it reads, with the window in which it fills a batch:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
_VISIBILITY_TIMEOUT = 6 * _TIMEOUT
# A poison message is parked by the function itself. The redrive policy must outlast an outage of the table, which would
# otherwise empty the queue into its dead-letter queue.
_OUTAGE_SECONDS = 6 * 3600
# The planner gives a step up that has had to wait for an hour. What fails is hidden for up to a minute each time.
_MOST_RECEIVES = _OUTAGE_SECONDS // LONGEST_HIDDEN_SECONDS + 40
_OF_JOBS = ("BatchGetItem", "BatchWriteItem", "PutItem", "UpdateItem")
_RECEIVE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")


class Ingest(Construct):
    """From the inbound queue to the table, in batches. Its messages fail one by one."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id)
        names = deployment.names
        self.dead_letter_queue = DurableQueue(
            self, "DeadLetterQueue", name=names.inbound_dlq, deployment=deployment, redriven_from=[names.inbound]
        )
        self.inbound = DurableQueue(
            self,
            "Queue",
            name=names.inbound,
            deployment=deployment,
            visibility_timeout=_VISIBILITY_TIMEOUT + _WINDOW,
            dead_letter_queue=DeadLetterQueue(
                queue=self.dead_letter_queue, max_receive_count=_OUTAGE_SECONDS // (_VISIBILITY_TIMEOUT + _WINDOW) + 1
            ),
        )
        arns = Arns(self, names=names)
        ingest = CoreFunction(
            self,
            "Ingest",
            name="ingest",
            deployment=deployment,
            timeout=_TIMEOUT,
            environment=Settings(deployment=deployment.name, queue_urls=arns.queue_urls).to_env(),
            statements=self._statements(arns, deployment),
        )
        self.function, self.live = ingest.function, ingest.live
        self.live.add_event_source(
            SqsEventSource(
                self.inbound,
                batch_size=500,
                max_batching_window=Duration.seconds(_WINDOW),
                max_concurrency=deployment.ingest_max_concurrency,
                report_batch_item_failures=True,
            )
        )

    def _statements(self, arns: Arns, deployment: Deployment) -> list[PolicyStatement]:
        sends_to = [arns.teams_queues, arns.queue(deployment.names.dispatch_dlq), self.dead_letter_queue.queue_arn]
        # A transaction is made of PutItem, and of ConditionCheckItem on a partition's state. The update changes none:
        # it reads what a move may have put.
        return [
            allow(*(f"dynamodb:{action}" for action in _OF_JOBS), on=[arns.table]),
            allow("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", on=[arns.state]),
            allow("sqs:SendMessage", on=sends_to),
            allow(*_RECEIVE, on=[self.inbound.queue_arn]),
            allow("ssm:GetParameters", on=[arns.queue_parameters]),
        ]


class Planner(Construct):
    """The planner and the queue of planning jobs: Dueline's own, with one partition, which ticks as all others do.

    No policy of the deployment's lets anyone send to it but the core functions.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id)
        names = deployment.names
        self.dead_letter_queue = DurableQueue(
            self,
            "DeadLetterQueue",
            name=names.queue_dlq(PLANNER.name),
            deployment=deployment,
            # The watch sets its schedule going again, so nobody needs the message: its alarm is to end by itself.
            retention_days=1,
            redriven_from=[names.queue(PLANNER.name)],
        )
        self.queue = DurableQueue(
            self,
            "Queue",
            name=names.queue(PLANNER.name),
            deployment=deployment,
            visibility_timeout=_VISIBILITY_TIMEOUT,
            dead_letter_queue=DeadLetterQueue(queue=self.dead_letter_queue, max_receive_count=_MOST_RECEIVES),
        )
        planner = self._function(deployment)
        self.function, self.live = planner.function, planner.live
        # How many run at once need no limit: of each schedule there is one planning job at a time.
        self.live.add_event_source(SqsEventSource(self.queue, batch_size=10, report_batch_item_failures=True))

    def refuse_others(self, *senders: Function) -> None:
        """Let nobody send planning jobs but these functions and the planner, whatever the account's policies allow."""
        roles = [role.role_arn for each in (*senders, self.function) if (role := each.role)]
        self.queue.add_to_resource_policy(
            PolicyStatement(
                effect=Effect.DENY,
                principals=[AnyPrincipal()],
                actions=["sqs:SendMessage"],
                resources=[self.queue.queue_arn],
                conditions={"ArnNotEquals": {"aws:PrincipalArn": roles}},
            )
        )

    def _function(self, deployment: Deployment) -> CoreFunction:
        arns = Arns(self, names=deployment.names)
        planner = CoreFunction(
            self,
            "Planner",
            name="planner",
            deployment=deployment,
            timeout=_TIMEOUT,
            environment=PeriodSettings(
                deployment=deployment.name, queue_urls=arns.queue_urls, tick_period=deployment.tick_period
            ).to_env(),
            statements=self._statements(arns, deployment),
        )
        # A planner that is late reaches itself with each next step, which Lambda would stop after 16 rounds:
        # https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
        cast(CfnFunction, planner.function.node.default_child).recursive_loop = "Allow"
        return planner

    def _statements(self, arns: Arns, deployment: Deployment) -> list[PolicyStatement]:
        # It writes the runs of all queues, by the table's route: what is due soon goes the late path to its queue.
        return [
            allow(*(f"dynamodb:{action}" for action in _OF_JOBS), on=[arns.table]),
            allow("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", on=[arns.state]),
            # A fence it must not raise, nor resume a queue: so the rows of schedules alone.
            allow_on_rows("dynamodb:Query", "dynamodb:UpdateItem", table=arns.state, keys=["*#schedules", *WATCH_ROWS]),
            allow("sqs:SendMessage", on=[arns.teams_queues, arns.queue(deployment.names.dispatch_dlq)]),
            allow(*_RECEIVE, "sqs:ChangeMessageVisibility", on=[self.queue.queue_arn]),
        ]
