"""The alarms of the sandbox, named by what they are on, and the figures by which those ring whose causes take hours."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dueline.config import metrics
from dueline.config.deployment import load
from dueline.config.names import Names
from tests.acceptance import sandbox

# CloudFormation makes the name of the stack's and the construct's, and adds a hash to each.
_ON = re.compile(r"-Alarms([A-Za-z]+?)[0-9A-F]{8}(-|$)")
# How long a figure stays in an alarm's window, which slides.
_STAYS = timedelta(minutes=20)

# It reports by the state of alarms without data.
BY_SILENCE = ("WatchSilent",)
ON_FAULTS = (*BY_SILENCE, "ApiFaults", "FunctionErrors", "InboundAge", "TickDeadLetters", "plain Lateness")


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


@dataclass(frozen=True, kw_only=True, slots=True)
class ByFigure:
    """The values of a queue's metrics by which an alarm rings that looks at so long a window, soon to leave it."""

    window: timedelta
    rings: Mapping[str, float]
    queue: str

    def data(self, deployment: str, *, now: datetime) -> Iterator[dict[str, Any]]:
        """Yield what CloudWatch is to be given."""
        of = metrics.dimensions(deployment, self.queue)
        for name, value in self.rings.items():
            yield {
                "MetricName": name,
                "Dimensions": [{"Name": each, "Value": one} for each, one in of.items()],
                "Timestamp": now - self.window + _STAYS,
                "Value": value,
                "Unit": "Count",
            }


BY_FIGURE: Mapping[str, ByFigure] = {
    # Beside a million late jobs, those of a real hour are few.
    "plain OnTime": ByFigure(
        window=timedelta(hours=1), rings={metrics.ON_TIME: 1.0, metrics.DELAYED: 1_000_000.0}, queue="plain"
    ),
}
