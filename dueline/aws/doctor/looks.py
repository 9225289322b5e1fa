"""Looks: all that is looked at in a deployment, each with the rights that it needs."""

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dueline.aws.doctor import account, alarms, figures, functions, logs, queues, ticks
from dueline.aws.doctor.place import Place
from dueline.aws.faults import of_callers
from dueline.aws.sqs.dead_letters import CallersDeadLetters
from dueline.clock import SystemClock
from dueline.doctor.examine import Look
from dueline.model.message import Message
from dueline.operate.dead_letters import PutBack
from dueline.operate.kinds import Kind
from dueline.operate.redrive import Ends, Redrive
from dueline.retry.calls import Calls
from dueline.retry.patience import Patience

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_ALL: tuple[tuple[str, str, Callable[[Place], dict[str, Any]]], ...] = (
    ("schedules of ticks and watches", "scheduler:ListSchedules", ticks.schedules),
    ("fences, pauses and rates", "dynamodb:BatchGetItem", ticks.states),
    ("depths of queues and dead-letter queues", "sqs:GetQueueAttributes", queues.depths),
    ("SQS queues that were given up", "sqs:ListQueues, sqs:GetQueueAttributes", queues.left),
    ("figures of functions, tables and queues", "cloudwatch:GetMetricData", figures.figures),
    ("logs of functions", "logs:FilterLogEvents", logs.logs),
    ("concurrency of functions", "lambda:GetFunctionConcurrency", functions.reserved),
    ("event source mappings", "lambda:ListEventSourceMappings", functions.sources),
    ("concurrency of the account", "lambda:GetAccountSettings", functions.concurrency),
    ("alarms", "cloudwatch:DescribeAlarms", alarms.alarms),
    ("subscribers of alarms", "sns:ListSubscriptionsByTopic, cloudwatch:DescribeAlarms", alarms.subscribers),
    ("stacks", "cloudformation:DescribeStacks", functions.stacks),
    ("number of managed policies", "iam:GetAccountSummary", account.policies),
    (
        "policies of roles",
        "iam:GetAccountSummary, iam:ListPolicies, iam:ListEntitiesForPolicy, iam:ListAttachedRolePolicies",
        account.roles,
    ),
)
SAMPLE = ("reasons of dead letters", "sqs:ReceiveMessage, sqs:ChangeMessageVisibility, sqs:GetQueueAttributes")


def looks_at(place: Place, *, sample: int = 0) -> list[Look]:
    """Return all looks; with a `sample` also that into so many messages of each dead-letter queue."""
    every = list(_ALL)
    if sample:
        every.append((*SAMPLE, partial(_letters, most=sample)))
    return [Look(what=what, needs=needs, look=partial(_look, look, place, what)) for what, needs, look in every]


def _look(look: Callable[[Place], dict[str, Any]], place: Place, what: str) -> dict[str, Any]:
    with of_callers(f"looking at the {what}"):
        return look(place)


def _letters(place: Place, *, most: int) -> dict[str, Any]:
    """Receive some messages of each dead-letter queue that has any, and let others see them again."""
    names = place.names
    places = [names.dispatch_dlq, names.inbound_dlq, *(names.queue_dlq(each.name) for each in place.deployment.queues)]
    return {"letters": {name: _kinds(place, name, most=most) for name in places}}


def _kinds(place: Place, name: str, *, most: int) -> tuple[Kind, ...]:
    client: SQSClient = place.client("sqs")
    ends = Ends(dead_letters=CallersDeadLetters(client, place.queue_urls + name), queues=())
    calls = Calls(patience=Patience(), clock=SystemClock(), jitter=random.random)
    return Redrive(ends, rule=_as_it_is, calls=calls, limit=most).look().kinds


def _as_it_is(message: Message) -> PutBack:
    return PutBack(message=message)
