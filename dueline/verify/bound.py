"""Bounds: what a figure must keep to, as data."""

from dataclasses import dataclass
from enum import StrEnum


class Gap(StrEnum):
    """What a local AWS does otherwise than AWS, so that nothing is proved there by what needs it."""

    SCHEDULER = "the local run fires the ticks itself: EventBridge Scheduler has no part in it"
    IAM = "the local AWS lets every caller do everything"
    ROWS = "the local AWS does not know conditions on a row's key"
    ALARMS = "the local AWS does not evaluate alarms by itself"
    METRICS = "the local AWS does not count what AWS bills"
    EXPIRY = "the local AWS does not switch TTL on when a stack says so"
    TTL = "the local AWS deletes rows when it likes"
    THROTTLING = "the local AWS takes whatever it is sent"
    FAIR = "the local AWS knows no fair queues"
    PACE = "the local AWS is one process, which is slower than SQS the more a queue holds"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """From `least` to `most`, in that unit. With a `gap` it is judged on AWS alone.

    >>> Bound(most=1.5, unit="s").holds(1.5), Bound(least=1).holds(0), Bound(most=1).holds(float("nan"))
    (True, False, False)
    """

    least: float | None = None
    most: float | None = None
    unit: str = ""
    gap: Gap | None = None

    def __post_init__(self) -> None:
        if self.least is None and self.most is None:
            raise ValueError("least and most are both missing: a bound that holds always proves nothing")

    def holds(self, figure: float) -> bool:
        """Tell whether a figure keeps to it; NaN, the figure of nothing, does not."""
        over = self.least is None or figure >= self.least
        return over and (self.most is None or figure <= self.most) and figure == figure

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.least == self.most:
            return f"{self.least:,g}{unit}"
        ends = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{word} {end:,g}{unit}" for word, end in ends if end is not None)


# Not one of them.
NONE = Bound(least=0, most=0)
# As many as there must be for the others to prove anything.
SOME = Bound(least=1)
