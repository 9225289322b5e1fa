"""Dead-letter queues and the queues that their jobs are put back into, with a caller's credentials."""

import json
from datetime import timedelta
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

_LONGEST_REQUEST = timedelta(seconds=15)


def dead_letters(name: str, queue: str | None, *, session: "Session") -> RedriveQueues:
    """Return the dead-letter queue of a queue and the SQS queues of its priorities.

    Without a queue, return the one in which the deployment parks jobs, and its inbound queue. Raises QueueNotFound or
    DeploymentNotFound, Forbidden or Unavailable.
    """
    names, own = Names(name), clients.Clients(session, longest=_LONGEST_REQUEST)
    about = f"the deployment {name!r}" if queue is None else f"queue {queue!r} of the deployment {name!r}"
    parameter = names.settings_parameter if queue is None else names.queue_parameter(queue_name(queue))
    with map_caller_errors(f"finding {about}"):
        try:
            content = own.of("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
        except ClientError as error:
            if queue is not None and error.response["Error"].get("Code") == "ParameterNotFound":
                raise QueueNotFound(f"there is no queue {queue!r} in the deployment {name!r}") from None
            raise
        sqs = own.of("sqs")
    with reading(parameter):
        values = json.loads(content)
        if queue is None:
            start = values["queue_urls"]
            urls = [start + names.dispatch_dlq, start + names.inbound]
        else:
            urls = [values["work"]["dead_letters"], *values["urls"]]
        bucket = names.payloads(account=urls[0].split("/")[-2], region=session.region_name)
        first, *queues = (SqsQueue(sqs, url, map_errors=map_caller_errors) for url in urls)
        payloads = S3Payloads(lambda: own.of("s3"), bucket)
        return RedriveQueues(dead_letters=first, queues=tuple(queues), payloads=payloads)
