"""EventBridge Scheduler's firings, as the fence tells them: a tick raises it to its own instant and the lookahead."""

from datetime import datetime, timedelta
from itertools import pairwise

from dueline.verify.bound import Bound, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends
from dueline.verify.sandbox import NEIGHBOUR
from dueline.verify.trial import Scale, Trial, by_scale

NAME = "firings"
_PERIOD = timedelta(minutes=1)
_LOOK_SECONDS = 2.0


def run(trial: Trial) -> Found:
    """Look at the fence of a queue that nobody uses; return how often it was raised, and after how long."""
    minutes = _minutes(trial.scale)
    fences = list[datetime]()
    begun, ends = trial.now, trial.now + minutes * _PERIOD
    while trial.now < ends:
        fence = trial.sandbox.fence(NEIGHBOUR)
        if fence is not None and fence not in fences[-1:]:
            fences.append(fence)
        trial.tell("watching the ticks", int((trial.now - begun) / _PERIOD), minutes)
        trial.sleep(_LOOK_SECONDS)
    gaps = [(after - before).total_seconds() for before, after in pairwise(fences)]
    # The first fence was raised before anyone looked.
    fired = len(fences) - 1
    return Found(
        figures={"firings more than minutes": fired - minutes, "longest gap": max(gaps, default=float("nan"))},
        notes=[f"{fired} firings in {minutes} minutes"],
    )


def _minutes(scale: Scale) -> int:
    return by_scale(scale, quick=5, full=15)


def sends(scale: Scale) -> Sends:
    return Sends(reads=_minutes(scale) * _PERIOD.total_seconds() / _LOOK_SECONDS)


CHECK = Check(
    name=NAME,
    promise="EventBridge Scheduler fires each tick once a minute, and two firings are never two minutes apart",
    bounds={
        "firings more than minutes": Bound(least=-1, most=1),
        "longest gap": Bound(most=120, unit="s"),
    },
    run=run,
    sends=sends,
    lane=NEIGHBOUR,
    gap=Gap.SCHEDULER,
)
