"""Looks: all that is looked at in a deployment, each with the rights that it needs."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from dueline.aws import cloudwatch, dynamodb_items, log_figures, sqs
from dueline.aws.botocore_errors import is_missing, map_caller_errors
from dueline.aws.deployment_context import DeploymentContext
from dueline.config.names import runbook
from dueline.core import clock, overview, ports, queue_settings, retry, rows
from dueline.core.rows import paused_key, rate_key
from dueline.operations import backlog, dead_letters, redrive
from dueline.operations.observation import FUNCTIONS, LOOKED_BACK, Alarm, Check, LogLine, QueueDepth, Share, Unchecked

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MOST_A_PAGE = 100
# Besides those with a page of their own.
_MESSAGES = (*backlog.PAGES_OF_LINES, "parked", "rejected")
# An unhandled error, as Lambda itself logs it.
_ERROR = "errorMessage"
_PATTERN = " || ".join([*(f'($.message = "{message}")' for message in _MESSAGES), "($.errorType = *)"])
# Of 1 MB each: no more of a log is read, and the report says so.
_MOST_PAGES = 20
_TOO_LONG = f"the log of the last hour is too long: of its pages, the first {_MOST_PAGES} were read"
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
# The state of an alarm whose metric is not reported, and of a new one.
_NO_DATA = "INSUFFICIENT_DATA"
_IS_NEW = timedelta(minutes=1)
# By then, each such metric was reported: the planner's watch does so every two hours at most.
_REPORTED = timedelta(hours=3)
# What the names of those end with that are attached to roles, of a queue or of a group.
_KINDS = ("_producer", "_consumer", "_operator", "_direct")


# Looks at what ticks leave: their schedules, the fences of partitions, and what controls a queue's workers.
def schedules(place: DeploymentContext) -> dict[str, Any]:
    """Return the states of the schedules of ticks, and of those that the watches are fired by, by their names."""
    names = place.names
    of_ticks = _states(place, GroupName=names.schedule_group)
    watches = _states(place, GroupName=names.watch_group)
    return {"schedules": of_ticks, "watches": watches}


def _states(place: DeploymentContext, **request: str) -> dict[str, str]:
    pages = place.client("scheduler").get_paginator("list_schedules").paginate(**request, MaxResults=_MOST_A_PAGE)
    try:
        return {each["Name"]: each["State"] for page in pages for each in page["Schedules"]}
    except ClientError as error:
        # Its schedules were deleted with the group.
        if not is_missing(error):
            raise
        return {}


def states(place: DeploymentContext) -> dict[str, Any]:
    """Return the fences of all partitions, the pause and rate of all queues, and when the watches ran last."""
    deployment = place.deployment
    partitions = deployment.partitions()
    controls = [of(queue.name) for queue in deployment.queues for of in (paused_key, rate_key)]
    keys = [*map(rows.state_key, partitions), *controls, *rows.WATCH_NOTES]
    table = dynamodb_items.Items(place.client("dynamodb"), lambda _: place.names.state)
    items = ports.read_all(keys, table=table).whole(f"rows of {place.names.state}")
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
    try:
        attributes = place.client("sqs").get_queue_attributes(**request)["Attributes"]
    except ClientError as error:
        if is_missing(error):
            return None
        raise
    retention = timedelta(seconds=int(attributes[_RETENTION]))
    return QueueDepth(waiting=int(attributes[_WAITING]), in_flight=int(attributes[_IN_FLIGHT]), retention=retention)


# Looks at the functions' logs: what went wrong in the last hour.
def logs(place: DeploymentContext) -> dict[str, Any]:
    """Return what the functions logged of what went wrong, each reason once with its count."""
    texts = {function: _Texts(place, place.names.function_log(function)) for function in FUNCTIONS}
    counted = Counter(line for function, its in texts.items() for line in _lines(function, its))
    return {
        "logs_gone": [function for function, its in texts.items() if its.are_gone],
        "partly": [
            Unchecked(what=f"all of the log of the function {function}", needs="", reason=_TOO_LONG)
            for function, its in texts.items()
            if its.are_cut
        ],
        "logged": [
            LogLine(function=function, message=message, reason=reason, queue=queue, count=count)
            for (function, message, reason, queue), count in counted.most_common()
        ],
    }


def _lines(function: str, texts: Iterable[str]) -> Iterator[tuple[str, str, str, str | None]]:
    for text in texts:
        if parts := _line_of(log_figures.parsed(text)):
            yield function, *parts


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


class _Texts:
    """The lines of a log that may say what went wrong. `are_cut`: there is more than was read.

    `are_gone`: there is no such log, which stacks make and functions cannot.
    """

    def __init__(self, place: DeploymentContext, group: str) -> None:
        start = int((place.now - LOOKED_BACK).timestamp() * 1000)
        request = {"logGroupName": group, "startTime": start, "filterPattern": f"{{ {_PATTERN} }}"}
        self._pages = place.client("logs").get_paginator("filter_log_events").paginate(**request)
        self.are_cut = self.are_gone = False

    def __iter__(self) -> Iterator[str]:
        try:
            for number, page in enumerate(self._pages, start=1):
                yield from (event["message"] for event in page["events"])
                self.are_cut = number == _MOST_PAGES and "nextToken" in page
                if self.are_cut:
                    return
        except ClientError as error:
            if not is_missing(error):
                raise
            self.are_gone = True


# Looks at the functions: whether Lambda may run them, and whether their queues reach them.
def reserved(place: DeploymentContext) -> dict[str, Any]:
    """Return the concurrency that is reserved for each function, None for none."""
    client = place.client("lambda")
    request = {name: client.get_function_concurrency(FunctionName=place.names.function(name)) for name in FUNCTIONS}
    return {"reserved": {name: answer.get("ReservedConcurrentExecutions") for name, answer in request.items()}}


def sources(place: DeploymentContext) -> dict[str, Any]:
    """Return the states of the event source mappings of each function that reads a queue."""
    client, names = place.client("lambda"), place.names
    named = {"ingest": names.inbound, "planner": names.queue(queue_settings.PLANNER.name)}
    request = {
        name: client.list_event_source_mappings(EventSourceArn=place.arn("sqs", named[name]))
        for name in backlog.SOURCES
    }
    answers = {name: answer["EventSourceMappings"] for name, answer in request.items()}
    return {"sources": {name: [each["State"] for each in mappings] for name, mappings in answers.items()}}


def concurrency(place: DeploymentContext) -> dict[str, Any]:
    limit = place.client("lambda").get_account_settings()["AccountLimit"]
    return {"concurrency": limit["ConcurrentExecutions"]}


def stacks(place: DeploymentContext) -> dict[str, Any]:
    """Return the states of the deployment's stacks, those among them that were never published or are to go."""
    names, pages = place.names, place.client("cloudformation").get_paginator("describe_stacks").paginate()
    statuses = {each["StackName"]: each["StackStatus"] for page in pages for each in page["Stacks"]}
    of_ours = (names.core_stack, names.groups_stack)
    return {
        "stacks": {n: status for n, status in statuses.items() if n in of_ours or n.startswith(names.queue_stack(""))}
    }


# Looks at alarms: which ring, and who hears them.
def alarms(place: DeploymentContext) -> dict[str, Any]:
    described = list(_described(place))
    # A local AWS leaves all of them as they began.
    is_evaluated = any(each["StateValue"] != _NO_DATA for each in described)
    return {"alarms": [_alarm(each, is_silent=is_evaluated and _is_silent(each, place.now)) for each in described]}


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


def _is_silent(described: Mapping[str, Any], now: datetime) -> bool:
    """Return whether an alarm without data was reported before, and is not only new."""
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
        page=runbook(page[1]) if page else None,
        is_silent=is_silent,
    )


def _subscribers(place: DeploymentContext, topic: str) -> int:
    pages = place.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    arns = [each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]]
    return sum(arn.startswith(_CONFIRMED) for arn in arns)


# Looks at the account: how much of its quotas for IAM policies is used.
def policies(place: DeploymentContext) -> dict[str, Any]:
    """Return how many managed policies the account has, of how many it may have."""
    summary = _summary(place)
    return {"policies": Share(used=summary["Policies"], quota=summary["PoliciesQuota"])}


def roles(place: DeploymentContext) -> dict[str, Any]:
    """Return, of each role that has a policy of the deployment, how many policies it has, of how many it may have."""
    iam, quota = place.client("iam"), _summary(place)["AttachedPoliciesPerRoleQuota"]
    pages = iam.get_paginator("list_policies").paginate(Scope="Local", OnlyAttached=True)
    policies = [each for page in pages for each in page["Policies"] if each["PolicyName"].endswith(_KINDS)]
    arns = [each["Arn"] for each in policies if each["PolicyName"].startswith(place.names.queue_prefix)]
    names = {
        role["RoleName"]
        for arn in arns
        for page in iam.get_paginator("list_entities_for_policy").paginate(PolicyArn=arn, EntityFilter="Role")
        for role in page["PolicyRoles"]
    }
    return {"roles": {role: Share(used=_count(place, role), quota=quota) for role in sorted(names)}}


def _count(place: DeploymentContext, role: str) -> int:
    pages = place.client("iam").get_paginator("list_attached_role_policies").paginate(RoleName=role)
    return sum(len(page["AttachedPolicies"]) for page in pages)


def _summary(place: DeploymentContext) -> Any:
    return place.client("iam").get_account_summary()["SummaryMap"]


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
    ("concurrency of the account", "lambda:GetAccountSettings", concurrency),
    ("alarms", "cloudwatch:DescribeAlarms", alarms),
    ("subscribers of alarms", "sns:ListSubscriptionsByTopic, cloudwatch:DescribeAlarms", subscribers),
    ("stacks", "cloudformation:DescribeStacks", stacks),
    ("number of managed policies", "iam:GetAccountSummary", policies),
    (
        "policies of roles",
        "iam:GetAccountSummary, iam:ListPolicies, iam:ListEntitiesForPolicy, iam:ListAttachedRolePolicies",
        roles,
    ),
)
SAMPLE = ("reasons of dead letters", "sqs:ReceiveMessage, sqs:ChangeMessageVisibility, sqs:GetQueueAttributes")


def all_checks(place: DeploymentContext, *, sample: int = 0) -> list[Check]:
    """Return all looks; with a `sample` also that into so many messages of each dead-letter queue."""
    every = list(_ALL)
    if sample:
        every.append((*SAMPLE, partial(_dead_letters, most=sample)))
    return [Check(what=what, needs=needs, look=partial(_look, look, place, what)) for what, needs, look in every]


def _look(look: Callable[[DeploymentContext], dict[str, Any]], place: DeploymentContext, what: str) -> dict[str, Any]:
    with map_caller_errors(f"looking at the {what}"):
        return look(place)


def _dead_letters(place: DeploymentContext, *, most: int) -> dict[str, Any]:
    """Receive some messages of each dead-letter queue that has any, and let others see them again."""
    names = place.names
    places = [names.dispatch_dlq, names.inbound_dlq, *(names.queue_dlq(each.name) for each in place.deployment.queues)]
    return {"error_groups": {name: _kinds(place, name, most=most) for name in places}}


def _kinds(place: DeploymentContext, name: str, *, most: int) -> tuple[dead_letters.ErrorGroup, ...]:
    client: SQSClient = place.client("sqs")
    ends = redrive.RedriveQueues(
        dead_letters=sqs.SqsQueue(client, place.queue_urls + name, map_errors=map_caller_errors), queues=()
    )
    calls = retry.Calls(patience=retry.Patience(), clock=clock.SystemClock(), jitter=random.random)
    return redrive.Redrive(ends, calls=calls, most=most).look().kinds
