"""Looks at alarms: which ring, and who hears them."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from dueline.aws.doctor.place import Place
from dueline.doctor.seen import Alarm

_PAGE = re.compile(r"docs/runbooks/[a-z-]+\.md")
# In its place, one that was not confirmed yet has PendingConfirmation, and one that was ended before that, Deleted.
_CONFIRMED = "arn:"
# What tells of silence, CloudWatch has no data for; and each alarm begins so.
_NO_DATA = "INSUFFICIENT_DATA"
_IS_NEW = timedelta(minutes=1)
# By then, each metric whose silence is told was reported: the planner's watch does so in two hours at most.
_REPORTED = timedelta(hours=3)


def alarms(place: Place) -> dict[str, Any]:
    """Return the deployment's alarms."""
    described = list(_described(place))
    # A local AWS leaves all of them as they began.
    is_evaluated = any(each["StateValue"] != _NO_DATA for each in described)
    return {"alarms": [_alarm(each, is_silent=is_evaluated and _is_silent(each, place.now)) for each in described]}


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


def _is_silent(described: Mapping[str, Any], now: datetime) -> bool:
    """Tell whether an alarm that tells of silence does so, and did not only begin."""
    if described["StateValue"] != _NO_DATA or not described.get("InsufficientDataActions"):
        return False
    made, since = described["AlarmConfigurationUpdatedTimestamp"], described["StateUpdatedTimestamp"]
    return bool(since - made > _IS_NEW or now - max(made, since) > _REPORTED)


def _alarm(described: Mapping[str, Any], *, is_silent: bool) -> Alarm:
    description = described.get("AlarmDescription", "")
    page = _PAGE.search(description)
    return Alarm(
        name=described["AlarmName"],
        is_ringing=described["StateValue"] == "ALARM",
        description=description,
        notifies=bool(described["AlarmActions"]) and described.get("ActionsEnabled", True),
        page=page[0] if page else None,
        is_silent=is_silent,
    )


def _subscribers(place: Place, topic: str) -> int:
    pages = place.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    arns = [each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]]
    return sum(arn.startswith(_CONFIRMED) for arn in arns)
