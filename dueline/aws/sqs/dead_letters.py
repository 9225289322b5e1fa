"""Dead-letter queues on SQS and the queues to put their jobs back into, with a caller's credentials."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from dueline.aws import clients
from dueline.aws.faults import of_callers
from dueline.aws.sqs.inbox import SqsInbox
from dueline.aws.sqs.queue import SqsQueue
from dueline.config.names import Names
from dueline.errors import QueueNotFound
from dueline.model.job import queue_name
from dueline.model.message import Message
from dueline.operate.redrive import Ends
from dueline.ports import Arrival, Depth, Refusal

if TYPE_CHECKING:
    from boto3 import Session
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

_LONGEST_REQUEST = timedelta(seconds=15)


class CallersQueue(SqsQueue):
    """An SQS queue to send to. What the caller's credentials do not allow raises Forbidden, which is not retried."""

    def send(self, messages: Sequence[Message]) -> list[Refusal]:
        with of_callers("putting messages back"):
            return super().send(messages)


class CallersDeadLetters(SqsInbox):
    """A dead-letter queue. What the caller's credentials do not allow raises Forbidden, which is not retried."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        super().__init__(client, url, patient=client)
        self._as_queue = SqsQueue(client, url)

    def depth(self) -> Depth:
        with of_callers("looking at dead letters"):
            return self._as_queue.depth()

    def receive(self, *, most: int, wait: int, hidden: int | None = None) -> list[Arrival]:
        with of_callers("looking at dead letters"):
            return super().receive(most=most, wait=wait, hidden=hidden)

    def delete(self, receipts: Sequence[str]) -> list[Refusal]:
        with of_callers("deleting what was put back"):
            return super().delete(receipts)

    def hide(self, receipts: Sequence[str], seconds: Sequence[int]) -> list[Refusal]:
        with of_callers("showing dead letters again"):
            return super().hide(receipts, seconds)


def of_queue(name: str, queue: str, *, session: "Session") -> Ends:
    """Return the dead-letter queue of a queue and the SQS queues of its priorities.

    Raises QueueNotFound, Forbidden or Unavailable.
    """
    with of_callers(f"finding queue {queue!r} of the deployment {name!r}"):
        parameter = _parameter_of(name, queue_name(queue), clients.ssm(session, longest=_LONGEST_REQUEST))
        sqs = clients.sqs(session, longest=_LONGEST_REQUEST)
    urls = parameter.get("urls", [parameter["url"]])
    # An older deployment does not publish its dead-letter queue.
    beside = _beside(parameter["url"], Names(name).queue_dlq(queue))
    dead_letters = parameter.get("work", {}).get("dead_letters") or beside
    return _ends(sqs, dead_letters, urls)


def of_parked(name: str, *, session: "Session") -> Ends:
    """Return the queue in which a deployment parks jobs, and its inbound queue.

    Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    names = Names(name)
    with of_callers(f"finding the deployment {name!r}"):
        ssm = clients.ssm(session, longest=_LONGEST_REQUEST)
        settings = json.loads(ssm.get_parameter(Name=names.settings_parameter)["Parameter"]["Value"])
        sqs = clients.sqs(session, longest=_LONGEST_REQUEST)
    return _ends(sqs, settings["queue_urls"] + names.dispatch_dlq, [settings["queue_urls"] + names.inbound])


def _ends(sqs: "SQSClient", dead_letters: str, urls: Sequence[str]) -> Ends:
    return Ends(
        dead_letters=CallersDeadLetters(sqs, dead_letters), queues=tuple(CallersQueue(sqs, url) for url in urls)
    )


def _parameter_of(name: str, queue: str, ssm: "SSMClient") -> dict[str, Any]:
    try:
        parameter: dict[str, Any] = json.loads(
            ssm.get_parameter(Name=Names(name).queue_parameter(queue))["Parameter"]["Value"]
        )
    except ClientError as error:
        if error.response["Error"].get("Code") == "ParameterNotFound":
            raise QueueNotFound(f"there is no queue {queue!r} in the deployment {name!r}") from None
        raise
    return parameter


def _beside(url: str, name: str) -> str:
    """Return the URL of another queue of the same account and region."""
    return f"{url.rpartition('/')[0]}/{name}"
