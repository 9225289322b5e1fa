"""Looks at alarms: which ring, and who hears them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dueline.aws.doctor.place import Place
from dueline.doctor.seen import Alarm

_PAGE = re.compile(r"docs/runbooks/[a-z-]+\.md")
_PENDING = "PendingConfirmation"


def alarms(place: Place) -> dict[str, Any]:
    """Return the deployment's alarms."""
    return {"alarms": [_alarm(each) for each in _described(place)]}


def subscribers(place: Place) -> dict[str, Any]:
    """Return how many have confirmed that they hear each topic of alarms."""
    told = {action for alarm in _described(place) for action in alarm["AlarmActions"]}
    # The owner of a queue may have a topic elsewhere, which nobody here may look at.
    topics = {topic for topic in told if topic.startswith(place.topic(""))} | {place.topic(place.names.alarms)}
    return {"subscribers": {topic.rpartition(":")[2]: _subscribers(place, topic) for topic in sorted(topics)}}


def _described(place: Place) -> Iterator[Mapping[str, Any]]:
    names, client = place.names, place.client("cloudwatch")
    for prefix in (f"{names.core_stack}-", names.queue_stack("")):
        for page in client.get_paginator("describe_alarms").paginate(AlarmNamePrefix=prefix):
            yield from page["MetricAlarms"]


def _alarm(described: Mapping[str, Any]) -> Alarm:
    description = described.get("AlarmDescription", "")
    page = _PAGE.search(description)
    return Alarm(
        name=described["AlarmName"],
        is_ringing=described["StateValue"] == "ALARM",
        description=description,
        notifies=bool(described["AlarmActions"]) and described.get("ActionsEnabled", True),
        page=page[0] if page else None,
    )


def _subscribers(place: Place, topic: str) -> int:
    pages = place.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    arns = [each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]]
    return sum(arn != _PENDING for arn in arns)
