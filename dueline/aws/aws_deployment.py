"""A deployment on AWS: its table, queues, payloads and operations, built from its name for functions and clients.

What not all of them need is imported when it is built: the cold start of a function loads nothing else.
"""

import random
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from dueline.aws.botocore_errors import map_botocore_errors
from dueline.aws.clients import LANES, Clients
from dueline.aws.dynamodb import DynamoTable, DynamoTimeToLive
from dueline.aws.sqs import SqsQueue
from dueline.config.names import Names
from dueline.core.clock import SystemClock
from dueline.core.core_deployment import CoreDeployment
from dueline.core.job import Partition
from dueline.core.ports import Clock
from dueline.core.threads import Threads

if TYPE_CHECKING:
    from boto3 import Session

    from dueline.aws.s3 import S3Payloads
    from dueline.aws.server_clock import ServiceClock
    from dueline.aws.settings import SettingsStore
    from dueline.config.environment import ApiSettings


class AwsDeployment(CoreDeployment):
    """A deployment's table, queues and payloads, and the operations on them.

    No request takes longer than `longest`, its retry included. `queue_urls` is what the URLs of its queues begin with,
    `bucket` keeps large payloads. Building one costs nothing: each client is made at its first use, with the session's
    credentials. A `service_clock` learns the time from AWS's answers.
    """

    def __init__(
        self,
        name: str,
        *,
        longest: timedelta,
        queue_urls: str = "",
        bucket: str = "",
        session: "Session | None" = None,
        service_clock: "ServiceClock | None" = None,
    ) -> None:
        super().__init__(jitter=random.random)
        self.names = Names(name)
        self.clock: Clock = service_clock or SystemClock()
        self.spread = Threads(LANES).spread
        self.clients = Clients(session, longest=longest, service_clock=service_clock)
        # Not cached_property, whose lock a forked process may inherit as held.
        self._table = cache(self._new_table)
        self._queue_urls, self._bucket = queue_urls, bucket

    def make_clients(self) -> None:
        """Make the clients of the table and the queues now, and not in the first request that needs them."""
        _ = self.table, self.inbound

    @property
    def table(self) -> DynamoTable:
        return self._table()

    @property
    def payloads(self) -> "S3Payloads":
        from dueline.aws.s3 import S3Payloads

        return S3Payloads(partial(self.clients.of, "s3"), self._bucket)

    def find(self) -> "ApiSettings":
        """Read where the queues and the payloads are; return the settings of the deployment."""
        settings = self.settings_store().settings()
        self._queue_urls, self._bucket = settings.queue_urls, settings.payloads
        return settings

    def url(self, name: str) -> str:
        return self._queue_urls + name

    def queue(self, name: str) -> SqsQueue:
        return SqsQueue(self.clients.of("sqs"), self.url(name))

    @property
    def inbound(self) -> SqsQueue:
        return self.queue(self.names.inbound)

    @property
    def parked(self) -> SqsQueue:
        return self.queue(self.names.dispatch_dlq)

    def rejects(self) -> SqsQueue:
        return self.queue(self.names.inbound_dlq)

    def team_queue(self, queue: str, priority: int = 1) -> SqsQueue:
        return self.queue(self.names.queue(queue, priority))

    def dead_letter_queue(self, queue: str) -> SqsQueue:
        return self.queue(self.names.queue_dlq(queue))

    def settings_store(self) -> "SettingsStore":
        """Return a new reader of what the deployment and its queues publish, with a cache of its own."""
        from dueline.aws.settings import SettingsStore

        return SettingsStore(self.clients.of("ssm"), self.names, clock=self.clock)

    def time_to_live(self) -> DynamoTimeToLive:
        return DynamoTimeToLive(self.clients.of("dynamodb"), self.names.table)

    def ticked_partitions(self) -> list[Partition]:
        """Return the partitions whose ticks have schedules, enabled or not. Raises Throttled or Unavailable."""
        group = self.names.schedule_group
        with map_botocore_errors(f"listing the schedules of {group}"):
            pages = list(self.clients.of("scheduler").get_paginator("list_schedules").paginate(GroupName=group))
        names = [schedule["Name"].rpartition(".") for page in pages for schedule in page["Schedules"]]
        return [Partition(queue=queue, number=int(number)) for queue, _, number in names if number.isdigit()]

    def _new_table(self) -> DynamoTable:
        return DynamoTable(self.clients.of("dynamodb"), self.names.table, state=self.names.state)
