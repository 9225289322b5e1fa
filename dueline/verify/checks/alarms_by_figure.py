"""Alarms whose causes take hours: each rings by figures that CloudWatch is told, and falls silent without them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from dueline.config import metrics
from dueline.verify.bound import Gap
from dueline.verify.check import Check, Found
from dueline.verify.checks.alarms import BOUNDS, TOLD_AFTER, Heard
from dueline.verify.price import Sends
from dueline.verify.sandbox import PLAIN, Figure
from dueline.verify.trial import Scale, Trial

NAME = "alarms-by-figure"
# How long a figure stays in an alarm's window, which slides, and how long ahead one is told, which may be two hours:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation-window.html
_STAYS = timedelta(minutes=20)
_MINUTE = timedelta(minutes=1)
# Beside it, the jobs of a real hour are few.
_VERY_MANY = 1_000_000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ByFigure:
    """The values of metrics by which an alarm rings that looks at so long a window.

    One that rings for its `whole` window has one in each minute, and else one that is to leave it soon. `then` are told
    besides: what the functions tell once in an hour only, and without which there is no state.
    """

    window: timedelta
    rings: Mapping[str, float]
    then: Mapping[str, float]
    queue: str | None = None
    is_whole: bool = False

    def figures(self, trial: Trial) -> list[Figure]:
        """Return what CloudWatch is to be told."""
        begin = trial.now - self.window
        minutes = (self.window + _STAYS) // _MINUTE if self.is_whole else 0
        ats = [begin + number * _MINUTE for number in range(minutes)] or [begin + _STAYS]
        told = [(name, value, at) for at in ats for name, value in self.rings.items()]
        told += [(name, value, trial.now) for name, value in self.then.items()]
        return [Figure(metric=name, value=value, at=at, queue=self.queue) for name, value, at in told]


BY_FIGURE: Mapping[str, ByFigure] = {
    "NeverTicked": ByFigure(window=timedelta(hours=2), rings={metrics.NEVER_TICKED: 1.0}, then={}, is_whole=True),
    "StandingStill": ByFigure(
        window=timedelta(hours=2), rings={metrics.STANDING_STILL: 1.0}, then={metrics.STANDING_STILL: 0.0}
    ),
    "TtlOff": ByFigure(window=timedelta(minutes=30), rings={metrics.TTL_OFF: 1.0}, then={metrics.TTL_OFF: 0.0}),
    f"{PLAIN} OnTime": ByFigure(
        window=timedelta(hours=1),
        rings={metrics.ON_TIME: 1.0, metrics.DELAYED: _VERY_MANY},
        then={},
        queue=PLAIN,
    ),
}


def run(trial: Trial) -> Found:
    """Tell CloudWatch what would make each alarm ring, of the past; wait until they ring, and until they end."""
    heard = Heard(trial, tuple(BY_FIGURE))
    trial.sandbox.tell([figure for each in BY_FIGURE.values() for figure in each.figures(trial)])
    heard.until_all_rang(BY_FIGURE, until=trial.now + TOLD_AFTER)
    heard.until_silent()
    return heard.found()


def sends(_: Scale) -> Sends:
    # The two metrics that nothing reports otherwise are among those of the sandbox.
    return Sends()


CHECK = Check(
    name=NAME,
    promise="The alarms whose causes take hours ring by the figures of their causes, and fall silent",
    bounds=BOUNDS,
    run=run,
    sends=sends,
    lane=NAME,
    gap=Gap.ALARMS,
)
