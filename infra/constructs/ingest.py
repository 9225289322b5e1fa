"""The ingest function, its inbound queue and that queue's dead-letter queue."""

from aws_cdk import Duration
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from aws_cdk.aws_sqs import DeadLetterQueue
from constructs import Construct

from dueline.config.deployment import Deployment
from dueline.config.environment import IngestSettings
from infra.arns import Arns
from infra.constructs.function import CoreFunction
from infra.constructs.queue import DurableQueue
from infra.grants import allow

_TIMEOUT = 30
_OF_JOBS = ("BatchGetItem", "BatchWriteItem", "PutItem", "UpdateItem")
_WINDOW = 1
# What Lambda requires of a queue that it reads in batches:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
_VISIBILITY_TIMEOUT = 6 * _TIMEOUT + _WINDOW
# Ingest parks a poison message itself. The redrive policy must outlast an outage of the table, which
# would otherwise empty the buffer into the dead-letter queue.
_OUTAGE_SECONDS = 6 * 3600


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
            visibility_timeout=_VISIBILITY_TIMEOUT,
            dead_letter_queue=DeadLetterQueue(
                queue=self.dead_letter_queue, max_receive_count=_OUTAGE_SECONDS // _VISIBILITY_TIMEOUT + 1
            ),
        )
        arns = Arns(self, names=names)
        ingest = CoreFunction(
            self,
            "Ingest",
            name="ingest",
            deployment=deployment,
            timeout=_TIMEOUT,
            environment=IngestSettings(deployment=deployment.name, queue_urls=arns.queue_urls).to_env(),
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
        receives = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
        return [
            allow(*(f"dynamodb:{action}" for action in _OF_JOBS), on=[arns.table]),
            allow("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", on=[arns.state]),
            allow("sqs:SendMessage", on=sends_to),
            allow(*receives, on=[self.inbound.queue_arn]),
            allow("ssm:GetParameter", on=[arns.queue_parameters]),
        ]
