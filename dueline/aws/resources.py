"""What callers may ask of a deployment on AWS: of the HTTP API, and of direct clients."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from dueline.aws import clients
from dueline.aws.deployed import Deployed
from dueline.aws.payloads import S3Payloads
from dueline.errors import DuelineError
from dueline.lookup.listing import Listed, Span, list_jobs
from dueline.lookup.overview import Overview, overview
from dueline.lookup.submitted import Told, told_of, told_of_move
from dueline.model.job import Job
from dueline.model.queue_settings import QueueSettings
from dueline.protocol.cancel import CancelMany
from dueline.protocol.reschedule import Moved, Reschedule
from dueline.protocol.submit import Submit
from dueline.protocol.uploads import Begun, begin

if TYPE_CHECKING:
    from boto3 import Session

    from dueline.aws.service_clock import ServiceClock


class Resources(Deployed):
    """What one process uses of a deployment on behalf of callers. `bucket` keeps its large payloads."""

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

    @cached_property
    def payloads(self) -> S3Payloads:
        return S3Payloads(self._s3_client, self._bucket)

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

    def told_of(
        self, results: Sequence[Job | DuelineError], *, queue: QueueSettings, until: float
    ) -> list[Told | DuelineError]:
        table, clock, spread = self.table, self.clock, self.spread
        return told_of(results, queue=queue, table=table, clock=clock, until=until, spread=spread)

    def reschedule(self, queue: QueueSettings, *, taking: int | None = None) -> Reschedule:
        return Reschedule(
            queue,
            taking=taking,
            inbound=self.inbound,
            table=self.table,
            payloads=self.payloads,
            clock=self.clock,
            new_uid=new_uid,
        )

    def told_of_move(self, moved: Moved, *, queue: QueueSettings) -> Told:
        return told_of_move(moved, queue=queue, table=self.table, now=self.clock.now())

    def begin_upload(self, queue: str, *, bytes: int, sha256: str) -> Begun:
        return begin(queue, bytes=bytes, sha256=sha256, payloads=self.payloads, clock=self.clock, new_uid=new_uid)

    def cancel_many(self, queue: QueueSettings, *, until: float) -> CancelMany:
        return CancelMany(queue, table=self.table, clock=self.clock, until=until, spread=self.spread)

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

    def _s3_client(self) -> Any:
        with self._making:
            return self._s3

    @cached_property
    def _s3(self) -> Any:
        return clients.s3(self._session, longest=self.longest)


def new_uid() -> str:
    return str(uuid.uuid4())
