"""A deployment's table and queues on AWS, found by their names."""

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING

from dueline.aws import clients
from dueline.aws.queue import SqsQueue
from dueline.aws.table import DynamoTable
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.dispatch import Dispatcher
from dueline.park import Parking

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class Resources:
    """What one process uses of a deployment. No request takes longer than `longest`, its retry included.

    `queue_urls` is what the URLs of its queues begin with. Finding is free: a client is made at its first use.
    """

    def __init__(self, deployment: str, *, queue_urls: str, longest: timedelta) -> None:
        self.names = Names(deployment)
        self.queue_urls = queue_urls
        self.clock = SystemClock()
        self.longest = longest
        self.spread = ThreadPoolExecutor(clients.LANES).map
        self.queue = cache(self._queue)

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(clients.dynamodb(longest=self.longest), self.names.table)

    @property
    def inbound(self) -> SqsQueue:
        return self.queue(self.names.inbound)

    @property
    def rejects(self) -> SqsQueue:
        return self.queue(self.names.inbound_dlq)

    def team_queue(self, queue: str) -> SqsQueue:
        return self.queue(self.names.queue(queue))

    def dead_letter_queue(self, queue: str) -> SqsQueue:
        return self.queue(self.names.queue_dlq(queue))

    def dispatcher(self, queue: str, *, precise: bool) -> Dispatcher:
        """Return what hands jobs to a team's queue, ten batches at once."""
        parking = Parking(table=self.table, dead_letters=self.queue(self.names.dispatch_dlq), clock=self.clock)
        return Dispatcher(
            queue=self.team_queue(queue),
            parking=parking,
            clock=self.clock,
            jitter=random.random,
            spread=self.spread,
            precise=precise,
        )

    def _queue(self, name: str) -> SqsQueue:
        return SqsQueue(self._sqs, self.queue_urls + name)

    @cached_property
    def _sqs(self) -> "SQSClient":
        return clients.sqs(longest=self.longest)
