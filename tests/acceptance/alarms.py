"""The alarms of the sandbox, named by what they are on, and the figures by which those ring whose causes take hours."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dueline.config import metrics
from dueline.config.deployment import load
from dueline.config.names import Names
from tests.acceptance import sandbox

# CloudFormation makes the name of the stack's and the construct's, and adds a hash to each.
_ON = re.compile(r"-Alarms([A-Za-z]+?)[0-9A-F]{8}(-|$)")
_MINUTE = timedelta(minutes=1)
# How long a figure stays in an alarm's window, which slides, and how long ahead one is put, which may be two hours:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation-window.html
_STAYS = timedelta(minutes=20)

ON_DEAD_LETTERS, GROWING = "DeadLetters", "Growing"
# These report by the state of alarms without data, too.
BY_SILENCE = ("WithoutTick", "plain MissingTicks")
ON_FAULTS = (
    *("ApiErrors", "IngestErrors", "PlannerErrors", "TickErrors"),
    *("ApiFaults", "ApiThrottles", "TickThrottles", "TtlErrors", "InboundAge"),
    *BY_SILENCE,
    "plain Lateness",
)


def on_what(alarm: str, names: Names) -> str:
    """Return what an alarm is on, nothing of one of another stack.

    >>> on_what("v-core-AlarmsInboundDeadLettersGrowing79BF62CD-4836BEEF2D0C", Names("v"))
    'InboundDeadLettersGrowing'
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
    """The values of metrics by which an alarm rings that looks at so long a window.

    One that rings for its `whole` window has one in each minute, and else one that is to leave it soon. `then` are put
    besides: what the functions report once in an hour only, and without which there is no state.
    """

    window: timedelta
    rings: Mapping[str, float]
    then: Mapping[str, float] = field(default_factory=dict)
    queue: str | None = None
    is_whole: bool = False

    def data(self, deployment: str, *, now: datetime) -> Iterator[dict[str, Any]]:
        """Yield what CloudWatch is to be given."""
        begin = now - self.window
        minutes = (self.window + _STAYS) // _MINUTE if self.is_whole else 0
        ats = [begin + number * _MINUTE for number in range(minutes)] or [begin + _STAYS]
        values = [(name, value, at) for at in ats for name, value in self.rings.items()]
        of = metrics.dimensions(deployment, self.queue)
        for name, value, at in [*values, *((name, value, now) for name, value in self.then.items())]:
            yield {
                "MetricName": name,
                "Dimensions": [{"Name": each, "Value": one} for each, one in of.items()],
                "Timestamp": at,
                "Value": value,
                "Unit": "Seconds" if name in metrics.IN_SECONDS else "Count",
            }


_TWO_HOURS = timedelta(hours=2)
BY_FIGURE: Mapping[str, ByFigure] = {
    "NeverTicked": ByFigure(window=_TWO_HOURS, rings={metrics.NEVER_TICKED: 1.0}, is_whole=True),
    "StandingStill": ByFigure(
        window=_TWO_HOURS, rings={metrics.STANDING_STILL: 1.0}, then={metrics.STANDING_STILL: 0.0}
    ),
    "TtlOff": ByFigure(window=timedelta(minutes=30), rings={metrics.TTL_OFF: 1.0}, then={metrics.TTL_OFF: 0.0}),
    # Beside a million late jobs, those of a real hour are few.
    "plain OnTime": ByFigure(
        window=timedelta(hours=1), rings={metrics.ON_TIME: 1.0, metrics.DELAYED: 1_000_000.0}, queue="plain"
    ),
}
