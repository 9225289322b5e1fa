"""boto3 clients: for callers, who have a session, and for the functions, which have none.

A caller's client follows the caller's session and environment in everything, and has a connection for each thread. A
function runs in the region that it calls, with an environment that the stacks wrote. So requests that it makes for
every job are sent without botocore, and connecting may take half a second only: its requests must fit into a lease.

One request ends within `longest`, its retry included; a caller's may take 5 s more for making connections.
"""

import os
from datetime import timedelta
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.config import Config

from dueline import __version__
from dueline.aws.transport.connections import Connections
from dueline.aws.transport.sending import send_directly

if TYPE_CHECKING:
    from boto3 import Session
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

    from dueline.aws.service_clock import ServiceClock

C = TypeVar("C")

ATTEMPTS = 2
LANES = 10
_CONNECT_SECONDS = 0.5
# The handshake of TLS is among them: a few ways around the world, and the second that a packet's loss takes.
_CALLERS_CONNECT_SECONDS = 3.0
# As many as a worker may have handlers. What there is no room for is closed after each request.
_CALLERS_CONNECTIONS = 1000
# The most that botocore's standard mode waits before a second attempt.
_BACKOFF_SECONDS = 1.0


class Clients:
    """One process's clients of a session, each made at its first use. Threads may share them.

    A `service_clock` learns the time from what DynamoDB and SQS answer.
    """

    def __init__(
        self, session: "Session | None", *, longest: timedelta, service_clock: "ServiceClock | None" = None
    ) -> None:
        self._service_clock = service_clock
        # Ten lanes that find no client would make ten, and each wait for all of them.
        self._making = Lock()
        # Not `cached_property`: in Python 3.11 that of all objects has one lock, which a forked child finds held.
        self._dynamodb = cache(lambda: self._timed(dynamodb(session, longest=longest)))
        self._sqs = cache(lambda: self._timed(sqs(session, longest=longest)))
        self._s3 = cache(lambda: s3(session, longest=longest))

    def dynamodb(self) -> "DynamoDBClient":
        with self._making:
            return self._dynamodb()

    def sqs(self) -> "SQSClient":
        with self._making:
            return self._sqs()

    def s3(self) -> Any:
        with self._making:
            return self._s3()

    def _timed(self, client: C) -> C:
        if self._service_clock:
            self._service_clock.listen_to(client)
        return client


def session(*, profile: str | None, region: str | None) -> "Session":
    """Return a session of a profile and in a region, by default those that boto3 finds."""
    return boto3.Session(profile_name=profile, region_name=region)


def dynamodb(session: "Session | None" = None, *, longest: timedelta) -> "DynamoDBClient":
    """Return a DynamoDB client."""
    client: DynamoDBClient = _client("dynamodb", session, longest)
    if session is None:
        _hasten(client, longest)
    return client


def sqs(session: "Session | None" = None, *, longest: timedelta) -> "SQSClient":
    """Return an SQS client.

    Its messages begin a new chain for Lambda's recursive loop detection, which would otherwise stop the sixteenth job
    in a row that schedules the next one.
    """
    client: SQSClient = _client("sqs", session, longest)
    client.meta.events.register_last("before-call", _begin_a_chain)
    if session is None:
        _hasten(client, longest)
    return client


def ssm(session: "Session | None" = None, *, longest: timedelta) -> "SSMClient":
    """Return an SSM client."""
    client: SSMClient = _client("ssm", session, longest)
    return client


def cloudwatch(session: "Session", *, longest: timedelta) -> Any:
    """Return a CloudWatch client."""
    return _client("cloudwatch", session, longest)


def scheduler(session: "Session | None" = None, *, longest: timedelta) -> Any:
    """Return a client of EventBridge Scheduler."""
    return _client("scheduler", session, longest)


def cloudformation(session: "Session | None" = None, *, longest: timedelta) -> Any:
    """Return a CloudFormation client."""
    return _client("cloudformation", session, longest)


def s3(session: "Session | None" = None, *, longest: timedelta) -> Any:
    """Return an S3 client.

    Its URLs name the region: for hours, S3's global endpoint redirects requests to a new bucket, which breaks presigned
    URLs.
    """
    return _client("s3", session, longest, Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))


def sts(session: "Session | None" = None, *, longest: timedelta) -> Any:
    """Return an STS client."""
    return _client("sts", session, longest)


def of_service(service: str, session: "Session", *, longest: timedelta) -> Any:
    """Return a client of a service that deployments are looked after with, such as `iam`.

    Its parameters are checked before they are sent: what is seldom asked is seldom tried.
    """
    return _client(service, session, longest, Config(parameter_validation=True))


def config(longest: timedelta, *, connect_seconds: float = _CONNECT_SECONDS, connections: int = LANES) -> Config:
    """Return the settings of a client, by default a function's."""
    return Config(
        connect_timeout=connect_seconds,
        read_timeout=_read_seconds(longest),
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        max_pool_connections=connections,
        # Without one of its own, botocore writes the user agent anew, out of a dozen parts, for each request.
        user_agent=f"dueline/{__version__}",
        # Requests are made by this library alone, and AWS checks them all the same.
        parameter_validation=False,
    )


def _client(service: str, session: "Session | None", longest: timedelta, more: Config | None = None) -> Any:
    make: Any = (session or boto3).client
    callers: Any = {"connect_seconds": _CALLERS_CONNECT_SECONDS, "connections": _CALLERS_CONNECTIONS}
    settings = config(longest, **({} if session is None else callers))
    return make(service, config=settings.merge(more or Config()))


def _read_seconds(longest: timedelta) -> float:
    return (longest.total_seconds() - _BACKOFF_SECONDS) / ATTEMPTS - _CONNECT_SECONDS


def _begin_a_chain(params: dict[str, Any], **_: Any) -> None:
    """Remove the header by which botocore, in Lambda, says how often an event came round."""
    params["headers"].pop("X-Amzn-Trace-Id", None)


def _hasten(client: Any, longest: timedelta) -> None:
    """Let a function's client send its requests for every job without botocore."""
    connections = Connections(
        connect_seconds=_CONNECT_SECONDS,
        read_seconds=_read_seconds(longest),
        lanes=LANES,
        trusted=os.environ.get("AWS_CA_BUNDLE"),
    )
    send_directly(client, connections)
