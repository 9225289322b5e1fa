"""A table that throttles: jobs go into the inbound queue meanwhile, and to the table once that takes them again."""

from datetime import timedelta

from dueline.client.answers import Job
from dueline.model.job import State
from dueline.verify.arrivals import early, lateness, lost
from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import FLOOD
from dueline.verify.trial import Scale, Trial, by_scale

NAME = "throttled"
# The table saves up what it does not use for five minutes, and takes so many more at once.
_SCHEDULING = timedelta(seconds=60)


def run(trial: Trial) -> Found:
    """Let the table take a write a second, and schedule many more; see what of them is buffered, and that all come."""
    count = _count(trial.scale)
    with trial.sandbox.inbox(FLOOD) as landed:
        with trial.sandbox.faults.throttled():
            due = trial.now + trial.table_after + _SCHEDULING
            trial.tell(f"scheduling {count:,} jobs", 0, count)
            new = [trial.new_job(NAME, number, at=due) for number in range(count)]
            answers = trial.sandbox.client.schedule_many(FLOOD, new)
        jobs = [each for each in answers if isinstance(each, Job)]
        if jobs:
            trial.wait_for(jobs, landed)
        return Found(
            figures={
                "accepted": len(jobs),
                "buffered": sum(job.state is State.ACCEPTED for job in jobs),
                "lost": lost(jobs, landed),
                "early": early(lateness(jobs, landed)),
            },
            notes=[f"{count - len(jobs)} jobs were refused, and their callers told"],
        )


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=1000, full=3000)


def sends(scale: Scale) -> Sends:
    # What is buffered is sent to the inbound queue and received there, in tens; what is throttled is tried again.
    return of_jobs(2 * _count(scale))


CHECK = Check(
    name=NAME,
    promise="While the table throttles, jobs are buffered; none that was accepted is lost",
    bounds={"accepted": SOME, "buffered": SOME, "lost": NONE, "early": NONE},
    run=run,
    sends=sends,
    gap=Gap.THROTTLING,
)
