"""A deployment's queues on AWS, as workers and Lambda consumers need them."""

from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import boto3

from dueline.aws import clients
from dueline.aws.dynamodb.locks import DynamoLocks
from dueline.aws.dynamodb.once import DynamoOnce
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.faults import of_callers
from dueline.aws.payloads import S3Payloads
from dueline.aws.published import Published
from dueline.aws.service_clock import ServiceClock
from dueline.aws.sqs.inbox import SqsInbox
from dueline.aws.sqs.queue import SqsQueue
from dueline.config.names import Names
from dueline.model.control_rows import paused_key
from dueline.worker.queue_connection import QueueConnection

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

_LONGEST_REQUEST = timedelta(seconds=5)
# It has room for a long poll of 20 s.
_LONGEST_POLL = timedelta(seconds=60)

C = TypeVar("C")


class WorkerResources:
    """The queues of a deployment, in the account and region of a session, by default the one that boto3 finds."""

    def __init__(self, name: str, *, session: boto3.Session | None = None) -> None:
        self._names = Names(name)
        self._session = session or boto3.Session()
        self.clock = ServiceClock()
        self._is_exact = False

    def connect(self, queue: str) -> QueueConnection:
        """Return the connection to a queue. Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable."""
        with of_callers(f"finding queue {queue} of deployment {self._names.deployment}"):
            settings = self._published.work(queue)
        table = DynamoTable(self._dynamodb, self._names.table, state=self._names.state)
        if settings.queue.precise and not self._is_exact:
            self._is_exact = True
            self.clock.keep_exact(lambda: table.read([paused_key(queue)], consistent=False))
        return QueueConnection(
            settings=settings,
            levels=tuple(SqsInbox(self._sqs, url, patient=self._patient_sqs) for url in settings.urls),
            dead_letters=SqsQueue(self._sqs, settings.dead_letters),
            table=table,
            read_payload=S3Payloads(lambda: self._s3, "").read,
            once=DynamoOnce(self._dynamodb, self._names.once, queue=queue),
            locks=DynamoLocks(self._dynamodb, self._names.state, queue=queue),
            clock=self.clock,
            behind=self.clock.behind,
            reload=partial(self.connect, queue),
        )

    @cached_property
    def _published(self) -> Published:
        client = self._timed(clients.ssm(self._session, longest=_LONGEST_REQUEST))
        return Published(client, self._names, clock=self.clock)

    @cached_property
    def _sqs(self) -> "SQSClient":
        return self._timed(clients.sqs(self._session, longest=_LONGEST_REQUEST))

    @cached_property
    def _patient_sqs(self) -> "SQSClient":
        return self._timed(clients.sqs(self._session, longest=_LONGEST_POLL))

    @cached_property
    def _dynamodb(self) -> "DynamoDBClient":
        return self._timed(clients.dynamodb(self._session, longest=_LONGEST_REQUEST))

    @cached_property
    def _s3(self) -> object:
        return clients.s3(self._session, longest=_LONGEST_REQUEST)

    def _timed(self, client: C) -> C:
        self.clock.listen_to(client)
        return client
