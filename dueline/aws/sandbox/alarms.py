"""The alarms of a sandbox, named by what they are on."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dueline.config import metrics
from dueline.config.names import Names
from dueline.verify.sandbox import QUEUES, Figure

# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
_MOST_FIGURES = 1000
# CloudFormation makes the name of the stack's and the construct's, and adds a hash to each.
_ON = re.compile(r"-Alarms([A-Za-z]+?)[0-9A-F]{8}(-|$)")


def states_of(names: Names, cloudwatch: Any) -> Mapping[str, str]:
    """Return the state of each alarm of the core stack, and of those of the queues, by what it is on."""
    pages = cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=f"{names.deployment}-", AlarmTypes=["MetricAlarm"]
    )
    states = {each["AlarmName"]: each["StateValue"] for page in pages for each in page["MetricAlarms"]}
    return {on: state for name, state in states.items() if (on := what_it_is_on(name, names))}


def tell(names: Names, cloudwatch: Any, figures: Sequence[Figure]) -> None:
    """Tell CloudWatch figures of a deployment's own metrics."""
    for first in range(0, len(figures), _MOST_FIGURES):
        told = [_datum(names, each) for each in figures[first : first + _MOST_FIGURES]]
        cloudwatch.put_metric_data(Namespace=metrics.NAMESPACE, MetricData=told)


def _datum(names: Names, figure: Figure) -> dict[str, object]:
    of = metrics.dimensions(names.deployment, figure.queue)
    unit = "Seconds" if figure.metric in metrics.IN_SECONDS else "Count"
    return {
        "MetricName": figure.metric,
        "Dimensions": [{"Name": name, "Value": value} for name, value in of.items()],
        "Timestamp": figure.at,
        "Value": figure.value,
        "Unit": unit,
    }


def what_it_is_on(alarm: str, names: Names) -> str:
    """Return what an alarm is on, nothing of one of another stack.

    >>> what_it_is_on("v-core-AlarmsInboundDeadLettersGrowing79BF62CD-4836BEEF2D0C", Names("v"))
    'InboundDeadLettersGrowing'
    >>> what_it_is_on("v-queue-plain-vip-AlarmsLateness9EF343C2-AbC", Names("v"))
    'plain-vip Lateness'
    """
    stacks = {names.core_stack: "", **{names.queue_stack(queue): f"{queue} " for queue in QUEUES}}
    found = _ON.search(alarm)
    stack = alarm[: found.start()] if found else ""
    return stacks[stack] + found[1] if found and stack in stacks else ""
