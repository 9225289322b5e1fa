"""A deployment's table, queues and payloads on AWS, found by their names."""

import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import cache, cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from dueline.aws import clients
from dueline.aws.payloads import S3Payloads
from dueline.aws.queue import SqsQueue
from dueline.aws.service_clock import ServiceClock
from dueline.aws.table import DynamoTable
from dueline.cancel import CancelMany
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.dispatch import Dispatcher
from dueline.listing import Listed, Span, list_jobs
from dueline.overview import Overview, overview
from dueline.park import Parking
from dueline.ports import Clock
from dueline.queue import QueueSettings
from dueline.reschedule import Reschedule
from dueline.submit import Submit
from dueline.uploads import Begun, begin

if TYPE_CHECKING:
    from boto3 import Session
    from mypy_boto3_sqs import SQSClient

C = TypeVar("C")


class Resources:
    """What one process uses of a deployment. No request takes longer than `longest`, its retry included.

    `queue_urls` is what the URLs of its queues begin with; `bucket` keeps its large payloads. Finding is free: a client
    is made at its first use, with those credentials. A `service_clock` learns the time from AWS's answers.
    """

    def __init__(
        self,
        deployment: str,
        *,
        queue_urls: str,
        longest: timedelta,
        bucket: str = "",
        session: "Session | None" = None,
        service_clock: ServiceClock | None = None,
    ) -> None:
        self.names = Names(deployment)
        self.queue_urls = queue_urls
        self.clock: Clock = service_clock or SystemClock()
        self.longest = longest
        self._bucket = bucket
        self._session = session
        self._service_clock = service_clock
        self.spread = ThreadPoolExecutor(clients.LANES).map
        self.queue = cache(self._queue)
        self._making_s3 = Lock()

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(self._timed(clients.dynamodb(self._session, longest=self.longest)), self.names.table)

    @cached_property
    def payloads(self) -> S3Payloads:
        return S3Payloads(self._s3_client, self._bucket)

    @property
    def inbound(self) -> SqsQueue:
        return self.queue(self.names.inbound)

    @property
    def rejects(self) -> SqsQueue:
        return self.queue(self.names.inbound_dlq)

    def team_queue(self, queue: str, priority: int = 1) -> SqsQueue:
        return self.queue(self.names.queue(queue, priority))

    def dead_letter_queue(self, queue: str) -> SqsQueue:
        return self.queue(self.names.queue_dlq(queue))

    def submit(self, queue: QueueSettings, *, direct_horizon: timedelta) -> Submit:
        return Submit(
            queue,
            level=partial(self.team_queue, queue.name),
            inbound=self.inbound,
            table=self.table,
            payloads=self.payloads,
            direct_horizon=direct_horizon,
            clock=self.clock,
            new_uid=new_uid,
            spread=self.spread,
        )

    def reschedule(self, queue: QueueSettings) -> Reschedule:
        return Reschedule(
            queue,
            inbound=self.inbound,
            table=self.table,
            payloads=self.payloads,
            clock=self.clock,
            new_uid=new_uid,
        )

    def begin_upload(self, queue: str, *, bytes: int, sha256: str) -> Begun:
        return begin(queue, bytes=bytes, sha256=sha256, payloads=self.payloads, clock=self.clock, new_uid=new_uid)

    def cancel_many(self, *, until: float) -> CancelMany:
        return CancelMany(table=self.table, clock=self.clock, until=until, spread=self.spread)

    def list_jobs(self, span: Span, *, queue: QueueSettings, now: datetime) -> Listed:
        return list_jobs(span, queue=queue, table=self.table, now=now, spread=self.spread)

    def overview(self, queue: QueueSettings, *, lookahead: timedelta) -> Overview:
        return overview(
            queue,
            table=self.table,
            level=partial(self.team_queue, queue.name),
            dead_letters=self.dead_letter_queue(queue.name),
            lookahead=lookahead,
            now=self.clock.now(),
            spread=self.spread,
        )

    def dispatcher(self, queue: str, *, precise: bool) -> Dispatcher:
        """Return what hands jobs to a team's queue, ten batches at once."""
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
        return SqsQueue(self._sqs, self.queue_urls + name)

    def _s3_client(self) -> Any:
        # Ten lanes that find none would make ten, and each wait for all of them.
        with self._making_s3:
            return self._s3

    @cached_property
    def _s3(self) -> Any:
        return clients.s3(self._session, longest=self.longest)

    @cached_property
    def _sqs(self) -> "SQSClient":
        return self._timed(clients.sqs(self._session, longest=self.longest))

    def _timed(self, client: C) -> C:
        if self._service_clock:
            self._service_clock.listen_to(client)
        return client


def new_uid() -> str:
    return str(uuid.uuid4())
