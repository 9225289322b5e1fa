"""Fair queues: a tenant that floods a queue, and one that has a few jobs in it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from dueline.verify.arrivals import percentile
from dueline.verify.bound import NONE, Bound, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import PLAIN
from dueline.verify.trial import Scale, Trial, by_scale, taken
from dueline.worker.received import ReceivedJob

NAME = "fair"
_SOON, _LATER = timedelta(seconds=20), timedelta(seconds=5)
# How long a job takes, so that the flood lasts well beyond the instant at which the quiet tenant's jobs come.
_SECONDS = 0.2
# Whoever waits behind all that came before has nearly the whole of the flood before it.
_BEFORE = 0.6


def run(trial: Trial) -> Found:
    """Let a worker be slower than a tenant; return how much of the flood was processed before another's jobs."""
    loud, quiet = _counts(trial.scale)
    came = list[int]()

    def note(job: ReceivedJob) -> None:
        if isinstance(job.payload, dict) and job.payload.get("check") == NAME:
            came.append(int(job.payload["n"]))

    with trial.sandbox.working(PLAIN, note, seconds=_SECONDS):
        until = _flood(trial, loud, quiet) + timedelta(seconds=_SECONDS * (loud + quiet)) + trial.grace
        trial.wait("letting a worker keep up", lambda: len(set(came)), of=loud + quiet, until=until)
    return Found(
        figures={
            "lost": loud + quiet - len(set(came)),
            "of the flood, before the quiet tenant's": percentile(_before(came, loud), 50),
        }
    )


def _flood(trial: Trial, loud: int, quiet: int) -> datetime:
    """Schedule one tenant's jobs for one instant, and another's for soon after it; return when these are due."""
    due = trial.now + _SOON
    jobs = [trial.new_job(NAME, number, at=due, tenant="loud") for number in range(loud)]
    jobs += [trial.new_job(NAME, loud + each, at=due + _LATER, tenant="quiet") for each in range(quiet)]
    taken(trial.sandbox.client.schedule_many(PLAIN, jobs))
    return due + _LATER


def _before(came: Sequence[int], loud: int) -> list[float]:
    """Return, for each job of the quiet tenant in order, which share of the flood was processed before it."""
    shares, done = list[float](), set[int]()
    for number in dict.fromkeys(came):
        if number < loud:
            done.add(number)
        else:
            shares.append(len(done) / loud)
    return shares


def _counts(scale: Scale) -> tuple[int, int]:
    return by_scale(scale, quick=(500, 10), full=(3000, 50))


def sends(scale: Scale) -> Sends:
    return of_jobs(sum(_counts(scale)))


CHECK = Check(
    name=NAME,
    promise="One tenant's flood does not hold up another's jobs: SQS's fair queues let these go first",
    bounds={
        "lost": NONE,
        "of the flood, before the quiet tenant's": Bound(most=_BEFORE),
    },
    run=run,
    sends=sends,
    lane=PLAIN,
    gap=Gap.FAIR,
)
