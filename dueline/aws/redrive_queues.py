"""Dead-letter queues and the queues that their jobs are put back into, with a caller's credentials."""

import json
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from dueline.aws import clients
from dueline.aws.botocore_errors import map_caller_errors
from dueline.aws.s3 import S3Payloads
from dueline.aws.settings import reading
from dueline.aws.sqs import SqsQueue
from dueline.config.names import Names
from dueline.core.job import queue_name
from dueline.errors import QueueNotFound
from dueline.operations.redrive import RedriveQueues

if TYPE_CHECKING:
    from boto3 import Session
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

_LONGEST_REQUEST = timedelta(seconds=15)


def queue_dead_letters(name: str, queue: str, *, session: "Session") -> RedriveQueues:
    """Return the dead-letter queue of a queue and the SQS queues of its priorities.

    Raises QueueNotFound, Forbidden or Unavailable.
    """
    with map_caller_errors(f"finding queue {queue!r} of the deployment {name!r}"):
        content = _content_of(name, queue_name(queue), clients.client("ssm", session, longest=_LONGEST_REQUEST))
        sqs = clients.client("sqs", session, longest=_LONGEST_REQUEST)
    with reading(Names(name).queue_parameter(queue)):
        parameter = json.loads(content)
        return _redrive_queues(name, sqs, parameter["work"]["dead_letters"], parameter["urls"], session=session)


def parked_dead_letters(name: str, *, session: "Session") -> RedriveQueues:
    """Return the queue in which a deployment parks jobs, and its inbound queue.

    Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    names = Names(name)
    with map_caller_errors(f"finding the deployment {name!r}"):
        ssm = clients.client("ssm", session, longest=_LONGEST_REQUEST)
        content = ssm.get_parameter(Name=names.settings_parameter)["Parameter"]["Value"]
        sqs = clients.client("sqs", session, longest=_LONGEST_REQUEST)
    with reading(names.settings_parameter):
        urls = json.loads(content)["queue_urls"]
        return _redrive_queues(name, sqs, urls + names.dispatch_dlq, [urls + names.inbound], session=session)


def _redrive_queues(
    name: str, sqs: "SQSClient", dead_letters: str, urls: Sequence[str], *, session: "Session"
) -> RedriveQueues:
    account, region = dead_letters.split("/")[-2], session.region_name
    bucket = Names(name).payloads(account=account, region=region)
    first, *queues = (SqsQueue(sqs, url, map_errors=map_caller_errors) for url in (dead_letters, *urls))
    payloads = S3Payloads(cache(lambda: clients.client("s3", session, longest=_LONGEST_REQUEST)), bucket)
    return RedriveQueues(dead_letters=first, queues=tuple(queues), payloads=payloads)


def _content_of(name: str, queue: str, ssm: "SSMClient") -> str:
    try:
        return ssm.get_parameter(Name=Names(name).queue_parameter(queue))["Parameter"]["Value"]
    except ClientError as error:
        if error.response["Error"].get("Code") == "ParameterNotFound":
            raise QueueNotFound(f"there is no queue {queue!r} in the deployment {name!r}") from None
        raise
