"""What workers and Lambda consumers use of a deployment: its queues, and the locks of its schedules."""

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import boto3

from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.botocore_errors import map_caller_errors
from dueline.aws.clients import Clients
from dueline.aws.dynamodb_items import Items, Update
from dueline.aws.once import DynamoOnce
from dueline.aws.server_clock import ServiceClock
from dueline.aws.sqs import SqsQueue
from dueline.core import instant
from dueline.core.rows import RUN_IS_KEPT, paused_key, run_key
from dueline.worker.delivery import Report
from dueline.worker.queue_context import QueueContext

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_LONGEST_REQUEST = timedelta(seconds=5)
# It has room for a long poll of 20 s.
_LONGEST_POLL = timedelta(seconds=60)

# Updates alone: that is all that workers need a right to. A lock that is free keeps its row, until its TTL.
TAKE = Update(
    expression="SET #job = :job, #until = :until, #ttl = :ttl",
    condition="attribute_not_exists(#job) OR #job = :job OR #until <= :now",
)
FREE = Update(expression="REMOVE #job, #until", condition="#job = :job")


class WorkerDeployment:
    """The queues of a deployment, in the account and region of a session, by default the one that boto3 finds."""

    def __init__(self, name: str, *, session: boto3.Session | None = None) -> None:
        session = session or boto3.Session()
        self.clock = ServiceClock()
        self._deployed = AwsDeployment(name, session=session, longest=_LONGEST_REQUEST, service_clock=self.clock)
        self._polling = Clients(session, longest=_LONGEST_POLL, service_clock=self.clock)
        self._is_exact = False

    def connect(self, queue: str, *, report: Report) -> QueueContext:
        """Return what a worker needs of a queue.

        Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable.
        """
        names, clients, table = self._deployed.names, self._deployed.clients, self._deployed.table
        with map_caller_errors(f"finding queue {queue} of deployment {names.deployment}"):
            settings = self._deployed.settings_store().work(queue)
        if settings.queue.precise and not self._is_exact:
            self.clock.keep_exact(lambda: table.read([paused_key(queue)], consistent=False))
            self._is_exact = True
        return QueueContext(
            settings=settings,
            levels=tuple(SqsQueue(clients.of("sqs"), url, long_polls=self._polling.of("sqs")) for url in settings.urls),
            dead_letters=SqsQueue(clients.of("sqs"), settings.dead_letters),
            table=table,
            read_payload=self._deployed.payloads.read,
            once=DynamoOnce(clients.of("dynamodb"), names.once, queue=queue),
            locks=DynamoLocks(clients.of("dynamodb"), names.state, queue=queue),
            clock=self.clock,
            report=report,
            behind=self.clock.behind,
            reload=partial(self.connect, queue, report=report),
        )


class DynamoLocks:
    """The locks of one queue's schedules, a row each in the table of states. `client` is boto3's."""

    def __init__(self, client: "DynamoDBClient", table: str, *, queue: str) -> None:
        self._items, self._queue = Items(client, lambda _: table), queue

    def take(self, schedule: str, *, job: str, now: datetime, until: datetime) -> bool:
        ttl = int((until + RUN_IS_KEPT).timestamp())
        of_lock: dict[str, str | int] = {"job": job, "until": instant.epoch_ms(until), "ttl": ttl}
        values = {**of_lock, "now": instant.epoch_ms(now)}
        return self._items.update(run_key(self._queue, schedule), TAKE, values) is not None

    def free(self, schedule: str, *, job: str) -> None:
        self._items.update(run_key(self._queue, schedule), FREE, {"job": job})
