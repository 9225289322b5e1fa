"""Looks at SQS queues: how full they are."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from dueline.aws.doctor.place import Place
from dueline.config.names import Names
from dueline.doctor.seen import Deployment, QueueDepth
from dueline.model.queue_settings import PLANNER

_WAITING, _IN_FLIGHT = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
_RETENTION = "MessageRetentionPeriod"
# Without it, SQS tells no more than so many, and not that there are others.
_MOST_LISTED = 1000
_GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


def depths(place: Place) -> dict[str, Any]:
    """Return how many messages are in each SQS queue of the deployment; None is one that is not there."""
    return {"depths": {name: _depth(place, name) for name in names_of(place.deployment)}}


def left(place: Place) -> dict[str, Any]:
    """Return how many messages are in each SQS queue of a queue or level that is deployed no more, if it is there."""
    asked = {"QueueNamePrefix": place.names.queue_prefix, "PaginationConfig": {"PageSize": _MOST_LISTED}}
    pages = place.client("sqs").get_paginator("list_queues").paginate(**asked)
    there = {url.rpartition("/")[2] for page in pages for url in page.get("QueueUrls", ())}
    depths = {name: _depth(place, name) for name in sorted(there.difference(names_of(place.deployment)))}
    return {"left": {name: depth for name, depth in depths.items() if depth}}


def names_of(deployment: Deployment) -> Iterator[str]:
    """Yield the names of all SQS queues of a deployment."""
    names = deployment.names
    yield from (names.inbound, names.inbound_dlq, names.dispatch_dlq, names.tick_dlq)
    yield from (names.queue(PLANNER.name), names.queue_dlq(PLANNER.name))
    for queue in deployment.queues:
        yield from levels_of(names, queue.name, queue.settings.priorities)
        yield names.queue_dlq(queue.name)


def levels_of(names: Names, queue: str, priorities: int) -> list[str]:
    return [names.queue(queue, priority) for priority in range(1, priorities + 1)]


def _depth(place: Place, name: str) -> QueueDepth | None:
    asked = {"QueueUrl": place.queue_urls + name, "AttributeNames": [_WAITING, _IN_FLIGHT, _RETENTION]}
    try:
        told = place.client("sqs").get_queue_attributes(**asked)["Attributes"]
    except ClientError as error:
        if error.response["Error"].get("Code") in _GONE:
            return None
        raise
    retention = timedelta(seconds=int(told[_RETENTION]))
    return QueueDepth(waiting=int(told[_WAITING]), in_flight=int(told[_IN_FLIGHT]), retention=retention)
