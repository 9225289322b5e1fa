"""What the HTTP API and direct clients use of a deployment on AWS."""

import random
import uuid
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from dueline.aws.deployed import Deployed
from dueline.aws.payloads import S3Payloads
from dueline.lookup.overview import Overview, overview
from dueline.model.queue_settings import QueueSettings
from dueline.protocol.breaker import Breaker
from dueline.protocol.preparation import Preparation
from dueline.protocol.reschedule import Reschedule
from dueline.protocol.sender import Sender
from dueline.protocol.submission import JobFactory
from dueline.protocol.submit import Submit
from dueline.protocol.table_route import TableRoute
from dueline.protocol.write_through import WriteThrough

if TYPE_CHECKING:
    from boto3 import Session

    from dueline.aws.service_clock import ServiceClock


class Resources(Deployed):
    """A deployment's table, queues and payloads for its callers, and the operations that need its queues.

    Operations that need no queue are called with the table or the payloads directly. `bucket` keeps large payloads.
    """

    def __init__(
        self,
        deployment: str,
        *,
        queue_urls: str,
        longest: timedelta,
        bucket: str = "",
        session: "Session | None" = None,
        service_clock: "ServiceClock | None" = None,
    ) -> None:
        super().__init__(
            deployment, queue_urls=queue_urls, longest=longest, session=session, service_clock=service_clock
        )
        self._bucket = bucket
        self.breaker = cache(self._breaker)
        self._one_payloads = cache(self._payloads)

    @property
    def payloads(self) -> S3Payloads:
        return self._one_payloads()

    def _payloads(self) -> S3Payloads:
        return S3Payloads(self._clients.s3, self._bucket)

    def submit(self, queue: QueueSettings, *, direct_horizon: timedelta, is_buffered: bool = True) -> Submit:
        """Return what submits jobs of a queue; `is_buffered` where the inbound queue takes what the table does not."""
        clock, spread, level = self.clock, self.spread, partial(self.team_queue, queue.name)
        dispatcher = partial(self.dispatcher, precise=queue.precise)
        route = TableRoute(table=self.table, dispatcher=dispatcher, clock=clock, spread=spread)
        return Submit(
            JobFactory(queue, direct_horizon=direct_horizon, new_uid=new_uid),
            preparation=Preparation(queue.name, table=self.table, payloads=self.payloads, clock=clock, spread=spread),
            table=WriteThrough(route, breaker=self.breaker(queue.name)),
            sender=Sender(queue, level=level, inbound=self.inbound, clock=clock, spread=spread),
            clock=clock,
            is_buffered=is_buffered,
        )

    def _breaker(self, _: str) -> Breaker:
        return Breaker(clock=self.clock, jitter=random.random)

    def reschedule(self, queue: QueueSettings) -> Reschedule:
        return Reschedule(
            queue,
            inbound=self.inbound,
            table=self.table,
            payloads=self.payloads,
            clock=self.clock,
            new_uid=new_uid,
        )

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


def new_uid() -> str:
    return str(uuid.uuid4())
