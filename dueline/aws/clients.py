"""boto3 clients whose time-outs fit into a lease."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from dueline import __version__

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
    return (session or boto3).client("dynamodb", config=_config(longest))


def sqs(session: "Session | None" = None, *, longest: timedelta) -> "SQSClient":
    """Return an SQS client, one request of which ends within `longest`, its retry included."""
    return (session or boto3).client("sqs", config=_config(longest))


def ssm(session: "Session | None" = None, *, longest: timedelta) -> "SSMClient":
    """Return an SSM client, one request of which ends within `longest`, its retry included."""
    return (session or boto3).client("ssm", config=_config(longest))


def s3(session: "Session | None" = None, *, longest: timedelta) -> Any:
    """Return an S3 client, one request of which ends within `longest`, its retry included.

    Its URLs name the region: at S3's global endpoint, a new bucket's are answered with redirects for hours, which no
    signed URL survives.
    """
    of_s3 = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})
    return (session or boto3).client("s3", config=_config(longest).merge(of_s3))


def _config(longest: timedelta) -> Config:
    attempt = (longest.total_seconds() - _BACKOFF_SECONDS) / ATTEMPTS
    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=attempt - _CONNECT_SECONDS,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        max_pool_connections=LANES,
        # Without one of its own, botocore writes the user agent anew, out of a dozen parts, for each request.
        user_agent=f"dueline/{__version__}",
        # Requests are made by this library alone, and AWS checks them all the same.
        parameter_validation=False,
    )
