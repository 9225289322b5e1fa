"""SQS's message timers: everything that Dueline promises of a due time rests on them."""

import json
from collections.abc import Sequence
from datetime import timedelta
from itertools import count

from dueline.verify.arrivals import early, percentile, seconds
from dueline.verify.bound import NONE, Bound, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends
from dueline.verify.sandbox import PLAIN, Landed
from dueline.verify.trial import Scale, Trial, by_scale

NAME = "timers"
_BATCH = 10
_LONGEST_SECONDS = {Scale.QUICK: 10, Scale.FULL: 30}


def run(trial: Trial) -> Found:
    """Send messages at random fractions of a second, each batch with one delay; see when SQS shows them."""
    with trial.sandbox.inbox(PLAIN) as landed:
        delays = _send(trial)
        ends = trial.now + timedelta(seconds=_LONGEST_SECONDS[trial.scale]) + trial.grace
        trial.wait("waiting for SQS's timers", lambda: len(_ours(trial, landed)), of=len(delays), until=ends)
        came = _ours(trial, landed)
    late = sorted(seconds(each.visible, since=each.sent) - delays[number] for number, each in came.items())
    return Found(
        figures={
            "lost": len(delays) - len(came),
            "visible before its time": early(late),
            "visible after its time, p50": percentile(late, 50),
            "visible after its time, p95": percentile(late, 95),
            "visible after its time, most": percentile(late, 100),
        }
    )


def _send(trial: Trial) -> dict[int, int]:
    """Send them all; return the delay of each, by number."""
    delays, numbers, total = dict[int, int](), count(), by_scale(trial.scale, quick=100, full=2000)
    while len(delays) < total:
        trial.tell("sending straight to SQS", len(delays), total)
        delay = trial.chance.randint(1, _LONGEST_SECONDS[trial.scale])
        batch = [next(numbers) for _ in range(_BATCH)]
        delays |= dict.fromkeys(batch, delay)
        trial.sandbox.send(PLAIN, [json.dumps(trial.payload(NAME, number)) for number in batch], delay=delay)
        trial.sleep(trial.chance.random() / 10)
    return delays


def _ours(trial: Trial, landed: Sequence[Landed]) -> dict[int, Landed]:
    bodies = ((json.loads(each.body), each) for each in list(landed) if not each.id)
    return {body["n"]: each for body, each in bodies if body.get("verify") == trial.run}


def sends(scale: Scale) -> Sends:
    return Sends(sqs=3 * by_scale(scale, quick=100, full=2000))


CHECK = Check(
    name=NAME,
    promise="SQS shows a delayed message in the second after its delay, and never before",
    bounds={
        "lost": NONE,
        "visible before its time": NONE,
        "visible after its time, p50": Bound(most=0.5, unit="s", gap=Gap.PACE),
        "visible after its time, p95": Bound(most=1.0, unit="s", gap=Gap.PACE),
        "visible after its time, most": Bound(most=10, unit="s", gap=Gap.PACE),
    },
    run=run,
    sends=sends,
    lane=PLAIN,
)
