"""Cold starts: more requests at once than functions are warm, so that most are answered by one that must start."""

from dueline.verify.arrivals import percentile
from dueline.verify.bound import NONE, Bound, Gap
from dueline.verify.check import Check, Found, NotJudged
from dueline.verify.price import Sends
from dueline.verify.sandbox import PLAIN
from dueline.verify.trial import Scale, Trial, by_scale

NAME = "cold-starts"
# What else runs keeps some ten of them warm.
_WARM = 10


def run(trial: Trial) -> Found:
    """Ask the HTTP API for a queue, all at once; return how long the answers took."""
    count, most = _count(trial.scale), trial.sandbox.most_at_once()
    if most < 2 * count:
        raise NotJudged(f"the account lets {most} functions run at once, and this takes {2 * count}")
    trial.tell("asking all at once", 0, count)
    seconds = list(trial.sandbox.spread(lambda _: _seconds(trial), range(count), lanes=count))
    answered = sorted(each for each in seconds if each is not None)
    return Found(
        figures={"not answered": count - len(answered), "p95": percentile(answered, 95)},
        notes=[f"{count} requests at once, the fastest answered after {percentile(answered, 0):.2f} s"],
    )


def _seconds(trial: Trial) -> float | None:
    clock = trial.sandbox.clock
    begun = clock.monotonic()
    answer = trial.sandbox.request("GET", f"/queues/{PLAIN}")
    return clock.monotonic() - begun if answer.status == 200 else None


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=2 * _WARM, full=5 * _WARM)


def sends(scale: Scale) -> Sends:
    count = _count(scale)
    return Sends(sqs=2 * count, reads=5 * count, http=count, invocations=count)


CHECK = Check(
    name=NAME,
    promise="An API that most of its functions must start for answers within three seconds",
    bounds={"not answered": NONE, "p95": Bound(most=3, unit="s")},
    run=run,
    sends=sends,
    lane="settings",
    gap=Gap.PACE,
)
