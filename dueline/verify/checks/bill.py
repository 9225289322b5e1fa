"""What a job is charged for, as CloudWatch counts it: units of the tables, messages, requests, and bytes of logs."""

from datetime import timedelta

from dueline.client.answers import Job
from dueline.errors import DuelineError
from dueline.model.queue_settings import PLANNER
from dueline.verify.arrivals import lost
from dueline.verify.bound import NONE, Bound, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import FLOOD
from dueline.verify.trial import NotScheduled, Scale, Trial, by_scale

NAME = "bill"
# A row of up to 1 KiB is one unit, and a job is one row and one message.
_UNITS, _MESSAGES, _REQUESTS = 1, 1, 1
# A fence that its submission reads, and the row that a tick reads among others; besides, each tick reads once.
_READS = 1.5
_TICK = timedelta(minutes=1)
# Of one job over HTTP: docs/operations.md.
_LOG_BYTES = 250
_TOLERANCE = 0.15
# CloudWatch has what happened a few minutes later, by whole minutes.
_TOLD_AFTER, _MINUTE = timedelta(minutes=5), timedelta(minutes=1)


def run(trial: Trial) -> Found:
    """Schedule small jobs one by one, by the table, over HTTP; return what AWS counted, by the job."""
    start = trial.now - _MINUTE
    with trial.sandbox.inbox(FLOOD) as landed:
        count = _count(trial.scale)
        trial.tell("scheduling one by one", 0, count)
        jobs = list(trial.sandbox.spread(lambda number: _schedule(trial, number), range(count)))
        trial.wait_for(jobs, landed)
    trial.pause("waiting for CloudWatch", until=trial.now + _TOLD_AFTER)
    end = trial.now
    used = trial.sandbox.used(FLOOD, start=start, end=end)
    return Found(
        figures={
            "lost": lost(jobs, landed),
            "write units a job": used.writes / count,
            "read units a job, less one a tick": (used.reads - _ticks(trial, end - start)) / count,
            "messages a job": used.messages / count,
            "requests a job": used.requests / count,
            "log bytes a job": used.log_bytes / count,
        }
    )


def _schedule(trial: Trial, number: int) -> Job:
    at = trial.now + trial.table_after
    try:
        return trial.sandbox.client.schedule(FLOOD, trial.payload(NAME, number), at=at)
    except DuelineError as error:
        raise NotScheduled(f"a job was not scheduled: {error}") from error


def _ticks(trial: Trial, span: timedelta) -> float:
    """Return how many ticks there are in so long a time."""
    partitions = sum(queue.partitions for queue in (*trial.sandbox.client.queues(), PLANNER))
    return partitions * (span / _TICK)


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=100, full=1000)


def sends(scale: Scale) -> Sends:
    return of_jobs(_count(scale), calls=_count(scale))


def _within(expected: float, unit: str = "") -> Bound:
    return Bound(least=expected * (1 - _TOLERANCE), most=expected * (1 + _TOLERANCE), unit=unit)


CHECK = Check(
    name=NAME,
    promise="A small job is charged as the cost model says: one write unit, one message, one request, and little else",
    bounds={
        "lost": NONE,
        "write units a job": _within(_UNITS),
        "read units a job, less one a tick": Bound(most=_READS),
        "messages a job": _within(_MESSAGES),
        "requests a job": _within(_REQUESTS),
        "log bytes a job": Bound(most=_LOG_BYTES * (1 + _TOLERANCE), unit="B"),
    },
    run=run,
    sends=sends,
    gap=Gap.METRICS,
)
