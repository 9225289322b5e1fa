"""boto3 clients whose time-outs fit into a lease."""

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.session import Session as BotocoreSession
from botocore.utils import get_environ_proxies

from dueline import __version__
from dueline.aws.connections import Connections
from dueline.aws.sending import send_directly

if TYPE_CHECKING:
    from boto3 import Session
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

ATTEMPTS = 2
LANES = 10
_CONNECT_SECONDS = 0.5
# The most that botocore's standard mode waits before a second attempt.
_BACKOFF_SECONDS = 1.0


def session(*, profile: str | None, region: str | None) -> "Session":
    """Return a session of a profile and in a region, by default those that boto3 finds."""
    return boto3.Session(profile_name=profile, region_name=region)


def dynamodb(session: "Session | None" = None, *, longest: timedelta) -> "DynamoDBClient":
    """Return a DynamoDB client, one request of which ends within `longest`, its retry included."""
    client = (session or boto3).client("dynamodb", config=config(longest))
    _hasten(client, session, longest)
    return client


def sqs(session: "Session | None" = None, *, longest: timedelta) -> "SQSClient":
    """Return an SQS client, one request of which ends within `longest`, its retry included."""
    client = (session or boto3).client("sqs", config=config(longest))
    _hasten(client, session, longest)
    return client


def ssm(session: "Session | None" = None, *, longest: timedelta) -> "SSMClient":
    """Return an SSM client, one request of which ends within `longest`, its retry included."""
    return (session or boto3).client("ssm", config=config(longest))


def s3(session: "Session | None" = None, *, longest: timedelta) -> Any:
    """Return an S3 client, one request of which ends within `longest`, its retry included.

    Its URLs name the region: at S3's global endpoint, a new bucket's are answered with redirects for hours, which no
    signed URL survives.
    """
    of_s3 = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})
    return (session or boto3).client("s3", config=config(longest).merge(of_s3))


def config(longest: timedelta) -> Config:
    """Return the settings of a client, one request of which ends within `longest`, its retry included."""
    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_read_seconds(longest),
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        max_pool_connections=LANES,
        # Without one of its own, botocore writes the user agent anew, out of a dozen parts, for each request.
        user_agent=f"dueline/{__version__}",
        # Requests are made by this library alone, and AWS checks them all the same.
        parameter_validation=False,
    )


def _read_seconds(longest: timedelta) -> float:
    return (longest.total_seconds() - _BACKOFF_SECONDS) / ATTEMPTS - _CONNECT_SECONDS


def _hasten(client: Any, session: "Session | None", longest: timedelta) -> None:
    """Let a client ask what concerns every job directly, unless it does so through a proxy."""
    if get_environ_proxies(client.meta.endpoint_url):
        return
    # boto3 calls the absence of a profile "default", which botocore would then look for.
    profile = session.profile_name if session and session.profile_name != "default" else None
    connections = Connections(
        connect_seconds=_CONNECT_SECONDS, read_seconds=_read_seconds(longest), lanes=LANES, trusted=_trusted(profile)
    )
    send_directly(client, connections)


def _trusted(profile: str | None) -> str | None:
    """Return the file of the certificates that boto3 trusts, if the environment or the profile names one."""
    known = BotocoreSession(profile=profile)
    return known.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
