"""A deployment's table and queues on AWS, found by their names: what every function uses."""

import random
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from dueline.aws.clients import LANES, Clients
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.sqs.queue import SqsQueue
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.ports import Clock
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.park import Parking
from dueline.retry.threads import Threads

if TYPE_CHECKING:
    from boto3 import Session
    from mypy_boto3_sqs import SQSClient

    from dueline.aws.service_clock import ServiceClock


class Deployed:
    """A deployment's table and queues. No request takes longer than `longest`, its retry included.

    `queue_urls` is what the URLs of its queues begin with. To name one costs nothing: clients are made at their first
    use, with the session's credentials. A `service_clock` learns the time from AWS's answers.
    """

    def __init__(
        self,
        deployment: str,
        *,
        queue_urls: str,
        longest: timedelta,
        session: "Session | None" = None,
        service_clock: "ServiceClock | None" = None,
    ) -> None:
        self.names = Names(deployment)
        self.clock: Clock = service_clock or SystemClock()
        self.spread = Threads(LANES).spread
        self.queue = cache(self._queue)
        self._one_table = cache(self._table)
        self._queue_urls = queue_urls
        self._clients = Clients(session, longest=longest, service_clock=service_clock)

    def make_clients(self) -> None:
        """Make the clients of the table and the queues now, and not in the first request that needs them."""
        _ = self.table, self.inbound

    @property
    def table(self) -> DynamoTable:
        return self._one_table()

    def _table(self) -> DynamoTable:
        return DynamoTable(self._clients.dynamodb(), self.names.table, state=self.names.state)

    @property
    def sqs(self) -> "SQSClient":
        return self._clients.sqs()

    def url(self, name: str) -> str:
        """Return the URL of a queue."""
        return self._queue_urls + name

    @property
    def inbound(self) -> SqsQueue:
        return self.queue(self.names.inbound)

    def rejects(self) -> SqsQueue:
        return self.queue(self.names.inbound_dlq)

    def team_queue(self, queue: str, priority: int = 1) -> SqsQueue:
        return self.queue(self.names.queue(queue, priority))

    def dead_letter_queue(self, queue: str) -> SqsQueue:
        return self.queue(self.names.queue_dlq(queue))

    def dispatcher(self, queue: str, *, precise: bool) -> Dispatcher:
        """Return the dispatcher of a queue, which sends ten batches at once."""
        parking = Parking(table=self.table, dead_letters=self.queue(self.names.dispatch_dlq), clock=self.clock)
        return Dispatcher(
            level=partial(self.team_queue, queue),
            parking=parking,
            clock=self.clock,
            jitter=random.random,
            spread=self.spread,
            precise=precise,
        )

    def _queue(self, name: str) -> SqsQueue:
        return SqsQueue(self.sqs, self.url(name))
