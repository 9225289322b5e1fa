"""A flood: very many jobs that are due at one instant, on four partitions."""

from datetime import datetime, timedelta

from dueline.client.answers import Job
from dueline.verify.arrivals import by_id, lost, seconds
from dueline.verify.bound import NONE, Bound, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import FLOOD
from dueline.verify.trial import Scale, Trial, by_scale, taken

NAME = "flood"
# Of four partitions, one is met by none of these once in 25,000 runs.
_REQUESTS = 40
# Until all of them are scheduled.
_SCHEDULING = timedelta(seconds=60)


def run(trial: Trial) -> Found:
    """Schedule them all for one instant; return when the last of them was handed to SQS."""
    count = _count(trial.scale)
    due = trial.now + trial.table_after + by_scale(trial.scale, quick=timedelta(), full=_SCHEDULING)
    with trial.sandbox.inbox(FLOOD) as landed:
        jobs = _scheduled(trial, due, count)
        trial.wait_for(jobs, landed)
        came = by_id(landed)
        sent = [seconds(came[job.id].sent, since=job.due) for job in jobs if job.id in came]
        early = [job for job in jobs if job.id in came and came[job.id].visible < job.due]
        partitions = {job.id.split(".")[1] for job in jobs}
        return Found(
            figures={
                "partitions": len(partitions),
                "lost": lost(jobs, landed),
                "early": len(early),
                "handed over after the instant": max(sent, default=float("nan")),
            }
        )


def _scheduled(trial: Trial, due: datetime, count: int) -> list[Job]:
    """Schedule so many jobs in some at once: those of one request share a partition, and each must have some."""
    trial.tell(f"scheduling {count:,} jobs", 0, count)
    size = -(-count // _REQUESTS)
    some = [range(first, min(first + size, count)) for first in range(0, count, size)]

    def schedule(numbers: range) -> list[Job]:
        new = [trial.new_job(NAME, number, at=due) for number in numbers]
        return taken(trial.sandbox.client.schedule_many(FLOOD, new))

    return [job for jobs in trial.sandbox.spread(schedule, some) for job in jobs]


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=1000, full=20_000)


def sends(scale: Scale) -> Sends:
    return of_jobs(_count(scale), calls=_count(scale) / 50 + _REQUESTS)


CHECK = Check(
    name=NAME,
    promise="20,000 jobs of one instant are handed to SQS within a minute of it, and none is lost or early",
    bounds={
        "partitions": Bound(least=4),
        "lost": NONE,
        "early": NONE,
        "handed over after the instant": Bound(most=60, unit="s", gap=Gap.PACE),
    },
    run=run,
    sends=sends,
)
