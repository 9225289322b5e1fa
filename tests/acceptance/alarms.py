"""The alarms of the sandbox, by what they are on, and the figures that make the one ring that looks at an hour."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from dueline.config import metrics
from dueline.config.deployment import load
from dueline.config.names import Names
from tests.acceptance import sandbox

# CloudFormation makes the name of the stack's and the construct's, and adds a hash to each.
_ON = re.compile(r"-Alarms([A-Za-z]+?)[0-9A-F]{8}(-|$)")

# It reports by the state of alarms without data.
BY_SILENCE = ("WatchSilent",)
BY_FIGURES = "plain OnTime"
EXPECTED = {*BY_SILENCE, BY_FIGURES, "ApiFaults", "FunctionErrors", "InboundAge", "TickDeadLetters", "plain Lateness"}

# Beside a million late jobs, those of a real hour are few.
FIGURES = {metrics.ON_TIME: 1.0, metrics.DELAYED: 1_000_000.0}
WINDOW = timedelta(hours=1)
# How long a figure stays in the alarm's window, which slides.
_STAYS = timedelta(minutes=20)


def on_what(alarm: str, names: Names) -> str:
    """Return what an alarm is on, nothing of one of another stack.

    >>> on_what("v-core-AlarmsTickDeadLetters79BF62CD-4836BEEF2D0C", Names("v"))
    'TickDeadLetters'
    >>> on_what("v-queue-plain-vip-AlarmsLateness9EF343C2-AbC", Names("v"))
    'plain-vip Lateness'
    """
    queues = load(sandbox.QUEUES).queues
    stacks = {names.core_stack: "", **{names.queue_stack(queue): f"{queue} " for queue in queues}}
    match = _ON.search(alarm)
    stack = alarm[: match.start()] if match else ""
    return stacks[stack] + match[1] if match and stack in stacks else ""


def figures(deployment: str, *, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield what CloudWatch is to be given for its alarm on late jobs to ring."""
    of = metrics.dimensions(deployment, "plain")
    for name, value in FIGURES.items():
        yield {
            "MetricName": name,
            "Dimensions": [{"Name": each, "Value": one} for each, one in of.items()],
            "Timestamp": now - WINDOW + _STAYS,
            "Value": value,
            "Unit": "Count",
        }
