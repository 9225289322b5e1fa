"""Idempotency keys: repeats at once, after one another, and with another payload."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from dueline.client.answers import Job
from dueline.errors import DuelineError, KeyReused
from dueline.verify.arrivals import ids_by_number, lost
from dueline.verify.bound import NONE
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import PLAIN, Landed
from dueline.verify.trial import NotScheduled, Scale, Trial, by_scale

NAME = "keys"
_REPEATS = 4
_SOON = timedelta(seconds=5)


def run(trial: Trial) -> Found:
    """Schedule under each key several times at once, by different times; return how many jobs there are of it."""
    numbers = range(_count(trial.scale))
    with trial.sandbox.inbox(PLAIN) as landed:
        asked = [number for number in numbers for _ in range(_REPEATS)]
        trial.tell("scheduling under keys", 0, len(asked))
        jobs = list(trial.sandbox.spread(lambda number: _schedule(trial, number), asked))
        accepted = sum(_is_accepted(trial, number) for number in numbers)
        first = {job.id: job for job in jobs}
        trial.wait_for(list(first.values()), landed)
        return _found(trial, asked, jobs, accepted, landed)


def _found(trial: Trial, asked: Sequence[int], jobs: Sequence[Job], accepted: int, landed: Sequence[Landed]) -> Found:
    told: dict[int, set[str]] = defaultdict(set)
    for number, job in zip(asked, jobs, strict=True):
        told[number].add(job.id)
    came = ids_by_number(landed, run=trial.run, check=NAME)
    return Found(
        figures={
            "keys with several jobs, by their answers": sum(len(ids) > 1 for ids in told.values()),
            "keys with several jobs, by what came": sum(len(ids) > 1 for ids in came.values()),
            "lost": lost(jobs, landed),
            "another payload under a key, accepted": accepted,
        }
    )


def _schedule(trial: Trial, number: int) -> Job:
    delay = _SOON.total_seconds() + trial.chance.random()
    try:
        return trial.sandbox.client.schedule(PLAIN, trial.payload(NAME, number), delay=delay, key=_key(trial, number))
    except DuelineError as error:
        raise NotScheduled(f"a job was not scheduled under a key: {error}") from error


def _is_accepted(trial: Trial, number: int) -> bool:
    try:
        trial.sandbox.client.schedule(PLAIN, "another payload", key=_key(trial, number))
    except KeyReused:
        return False
    return True


def _key(trial: Trial, number: int) -> str:
    return f"{trial.run}-{number}"


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=10, full=100)


def sends(scale: Scale) -> Sends:
    calls = _count(scale) * (_REPEATS + 1)
    return of_jobs(calls, calls=calls)


CHECK = Check(
    name=NAME,
    promise="Under one key there is one job, however often and at once it is scheduled",
    bounds={
        "keys with several jobs, by their answers": NONE,
        "keys with several jobs, by what came": NONE,
        "lost": NONE,
        "another payload under a key, accepted": NONE,
    },
    run=run,
    sends=sends,
    lane=PLAIN,
)
