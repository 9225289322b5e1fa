"""Looks: all that is looked at in a deployment, each with the rights that it needs."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from dueline.aws import cloudwatch
from dueline.aws.botocore_errors import is_missing, map_caller_errors, unless
from dueline.aws.deployment_context import DeploymentContext
from dueline.config.names import runbook
from dueline.core import overview, ports, queue_settings, rows
from dueline.core.rows import paused_key, rate_key
from dueline.operations import doctor
from dueline.operations.observation import FUNCTIONS, LOOKED_BACK, Alarm, Check, LogLine, QueueDepth, Unchecked

_MOST_A_PAGE = 100
# Besides those with a page of their own.
_MESSAGES = (*doctor.PAGES_OF_LINES, "parked", "rejected")
# An unhandled error, as Lambda itself logs it.
_ERROR = "errorMessage"
_PATTERNS = [*(f'($.message = "{message}")' for message in _MESSAGES), "($.errorType = *)"]
_TOO_LONG = "the log of the last hour is too long: only its beginning was read"
_MOST_CHARACTERS = 300
# The fields in which functions log a reason, the plainest first.
_REASONS = ("reason", "reasons", "steps", "queues")
_WAITING, _IN_FLIGHT = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
_RETENTION = "MessageRetentionPeriod"
# Without a page size, SQS lists no more than so many, and does not say that there are others.
_MOST_LISTED = 1000
_PAGE = re.compile(r"Runbook: \S*?([a-z-]+)\.md$")
# In its place, one that was not confirmed yet has PendingConfirmation, and one that was ended before that, Deleted.
_CONFIRMED = "arn:"


# Looks at what ticks leave: their schedules, the fences of partitions, and what controls a queue's workers.
def schedules(place: DeploymentContext) -> dict[str, Any]:
    """Return the states of the schedules of ticks, and of those that the watches are fired by, by their names."""
    names = place.names
    of_ticks = _states(place, GroupName=names.schedule_group)
    watches = _states(place, GroupName=names.watch_group)
    return {"schedules": of_ticks, "watches": watches}


def _states(place: DeploymentContext, **request: str) -> dict[str, str]:
    pages = place.client("scheduler").get_paginator("list_schedules").paginate(**request, MaxResults=_MOST_A_PAGE)
    # Its schedules were deleted with the group.
    answers = unless(is_missing, lambda: list(pages)) or []
    return {each["Name"]: each["State"] for page in answers for each in page["Schedules"]}


def states(place: DeploymentContext) -> dict[str, Any]:
    """Return the fences of all partitions, the pause and rate of all queues, and when the watches ran last."""
    deployment = place.deployment
    partitions = deployment.partitions()
    controls = [of(queue.name) for queue in deployment.queues for of in (paused_key, rate_key)]
    keys = [*map(rows.state_key, partitions), *controls, *rows.WATCH_NOTES]
    items = ports.read_all(keys, table=place.aws.table).whole(f"rows of {place.names.state}")
    fences = {each: rows.read_state(items.get(rows.state_key(each))).fence for each in partitions}
    by_queue = {queue.name: overview.control_among(items, queue.name) for queue in deployment.queues}
    return {"fences": fences, "notes": rows.read_watch_notes(items), "controls": by_queue}


# Looks at SQS queues: how full they are.
def depths(place: DeploymentContext) -> dict[str, Any]:
    """Return how many messages are in each SQS queue of the deployment; None is one that was deleted."""
    return {"depths": {name: _depth(place, name) for name in place.deployment.sqs_queues()}}


def left(place: DeploymentContext) -> dict[str, Any]:
    """Return how many messages are in each SQS queue of a queue or level that is deployed no more, if it is there."""
    request = {"QueueNamePrefix": place.names.queue_prefix, "PaginationConfig": {"PageSize": _MOST_LISTED}}
    pages = place.client("sqs").get_paginator("list_queues").paginate(**request)
    there = {url.rpartition("/")[2] for page in pages for url in page.get("QueueUrls", ())}
    depths = {name: _depth(place, name) for name in sorted(there.difference(place.deployment.sqs_queues()))}
    return {"left": {name: depth for name, depth in depths.items() if depth}}


def _depth(place: DeploymentContext, name: str) -> QueueDepth | None:
    request = {"QueueUrl": place.queue_urls + name, "AttributeNames": [_WAITING, _IN_FLIGHT, _RETENTION]}
    answer = unless(is_missing, partial(place.client("sqs").get_queue_attributes, **request))
    if answer is None:
        return None
    attributes = answer["Attributes"]
    retention = timedelta(seconds=int(attributes[_RETENTION]))
    return QueueDepth(waiting=int(attributes[_WAITING]), in_flight=int(attributes[_IN_FLIGHT]), retention=retention)


# Looks at the functions' logs: what went wrong in the last hour.
def logs(place: DeploymentContext) -> dict[str, Any]:
    """Return what the functions logged of what went wrong, each reason once with its count."""
    partly, counted = list[Unchecked](), Counter[tuple[str, str, str, str | None]]()
    client, span = place.client("logs"), {"start": place.now - LOOKED_BACK, "end": place.now}
    for function in FUNCTIONS:
        lines, is_whole = cloudwatch.read_log(client, place.names.function_log(function), _PATTERNS, **span)
        counted.update((function, *parts) for _, line in lines if (parts := _line_of(line)))
        if not is_whole:
            partly.append(Unchecked(what=f"all of the log of the function {function}", needs="", reason=_TOO_LONG))
    return {
        "partly": partly,
        "logged": [
            LogLine(function=function, message=message, reason=reason, queue=queue, count=count)
            for (function, message, reason, queue), count in counted.most_common()
        ],
    }


def _line_of(line: Mapping[str, Any]) -> tuple[str, str, str | None] | None:
    """Return what a line says: its message, its reason, and its queue if it has one."""
    queue = line.get("queue")
    if line.get("message") in _MESSAGES:
        cause = next((line[field] for field in _REASONS if line.get(field)), None)
        reason = cause if isinstance(cause, str) else json.dumps(cause)
        # Without a reason a caller was at fault.
        return None if cause is None else (line["message"], reason[:_MOST_CHARACTERS], queue)
    if "errorType" in line:
        return "failed", f"{line['errorType']}: {line.get(_ERROR, '')}"[:_MOST_CHARACTERS], queue
    return None


# Looks at the functions: whether Lambda may run them, and whether their queues reach them.
def reserved(place: DeploymentContext) -> dict[str, Any]:
    """Return the concurrency that is reserved for each function, None for none."""
    client = place.client("lambda")
    answers = {name: client.get_function_concurrency(FunctionName=place.names.function(name)) for name in FUNCTIONS}
    return {"reserved": {name: answer.get("ReservedConcurrentExecutions") for name, answer in answers.items()}}


def sources(place: DeploymentContext) -> dict[str, Any]:
    """Return the states of the event source mappings of each function that reads a queue."""
    client, names = place.client("lambda"), place.names
    named = {"ingest": names.inbound, "planner": names.queue(queue_settings.PLANNER.name)}
    arns = {name: place.arn("sqs", named[name]) for name in doctor.SOURCES}
    answers = {name: client.list_event_source_mappings(EventSourceArn=arn) for name, arn in arns.items()}
    mappings = {name: answer["EventSourceMappings"] for name, answer in answers.items()}
    return {"sources": {name: [each["State"] for each in its] for name, its in mappings.items()}}


# Looks at alarms: which ring, and who hears them.
def alarms(place: DeploymentContext) -> dict[str, Any]:
    return {"alarms": [_alarm(each) for each in _described(place)]}


def subscribers(place: DeploymentContext) -> dict[str, Any]:
    """Return how many have confirmed that they hear each topic of alarms: of a local AWS nothing."""
    actions = {action for alarm in _described(place) for action in alarm["AlarmActions"]}
    # The owner of a queue may have a topic elsewhere, which nobody here may look at.
    topics = {topic for topic in actions if topic.startswith(place.arn("sns", ""))}
    topics |= {place.arn("sns", place.names.alarms), place.arn("sns", place.names.tickets)}
    confirmed = {topic.rpartition(":")[2]: _subscribers(place, topic) for topic in sorted(topics)}
    # A local AWS mails nobody.
    is_local = urlsplit(place.client("sns").meta.endpoint_url).hostname in ("127.0.0.1", "localhost")
    return {} if is_local else {"subscribers": confirmed}


def _described(place: DeploymentContext) -> Iterator[Mapping[str, Any]]:
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
        page=runbook(page[1]) if page else None,
    )


def _subscribers(place: DeploymentContext, topic: str) -> int:
    pages = place.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    arns = [each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]]
    return sum(arn.startswith(_CONFIRMED) for arn in arns)


_ALL: tuple[tuple[str, str, Callable[[DeploymentContext], dict[str, Any]]], ...] = (
    ("schedules of ticks and watches", "scheduler:ListSchedules", schedules),
    ("fences, pauses and rates", "dynamodb:BatchGetItem", states),
    ("depths of queues and dead-letter queues", "sqs:GetQueueAttributes", depths),
    ("SQS queues that were given up", "sqs:ListQueues, sqs:GetQueueAttributes", left),
    ("figures of functions, tables and SQS queues", "cloudwatch:GetMetricData", cloudwatch.figures),
    ("lateness and throughput of queues", "logs:FilterLogEvents", cloudwatch.queue_figures),
    ("logs of functions", "logs:FilterLogEvents", logs),
    ("concurrency of functions", "lambda:GetFunctionConcurrency", reserved),
    ("event source mappings", "lambda:ListEventSourceMappings", sources),
    ("alarms", "cloudwatch:DescribeAlarms", alarms),
    ("subscribers of alarms", "sns:ListSubscriptionsByTopic, cloudwatch:DescribeAlarms", subscribers),
)


def all_checks(place: DeploymentContext) -> list[Check]:
    return [
        Check(what=what, needs=needs, look=map_caller_errors(f"looking at the {what}")(partial(look, place)))
        for what, needs, look in _ALL
    ]
