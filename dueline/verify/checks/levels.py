"""Jobs that fail for good, and jobs whose level is gone: each is kept as a dead letter, and can be put back."""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta

from dueline.client.answers import Job
from dueline.model.job import State
from dueline.verify.arrivals import by_id, early, lateness, lost
from dueline.verify.bound import NONE
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import LEVELS, PRIORITIES, Landed
from dueline.verify.trial import Scale, Trial, by_scale

REDRIVE, GONE = "redrive", "level-gone"
_SOON, _WITHIN = timedelta(seconds=5), timedelta(seconds=5)
# What is sent to a queue while SQS deletes it, for a minute, may be taken, and lost with it:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
_DELETED_AFTER = timedelta(seconds=75)
_BOTH = tuple(range(1, PRIORITIES + 1))


def run_redrive(trial: Trial) -> Found:
    """Let jobs of each level fail as often as they may; put them back, and see each come in its own level."""
    dues = trial.instants(_count(trial.scale), after=_SOON, within=_WITHIN)
    jobs = trial.schedule(LEVELS, REDRIVE, dues, priorities=_BOTH)
    with trial.sandbox.failing(LEVELS):
        dead = _most_dead(trial, of=len(jobs), until=dues[-1] + trial.grace)
    moved = _put_back(trial, LEVELS, dead)
    levels = _landed(trial, len(jobs))
    return Found(
        figures={
            "did not reach the dead-letter queue": max(0, len(jobs) - dead),
            "not put back": max(0, dead - moved),
            "lost": lost(jobs, [each for level in levels for each in level]),
            "came in another level": _astray(jobs, levels[-1]),
        }
    )


def _landed(trial: Trial, count: int) -> list[Sequence[Landed]]:
    """Return what came in each level, once so many jobs came in all of them together."""
    with ExitStack() as stack:
        levels = [stack.enter_context(trial.sandbox.inbox(LEVELS, priority=each)) for each in _BOTH]

        def came() -> int:
            return len({each.id for level in levels for each in list(level)})

        trial.wait("waiting for what was put back", came, of=count, until=trial.now + trial.grace)
    return levels


def _most_dead(trial: Trial, *, of: int, until: datetime) -> int:
    """Wait until so many jobs are dead letters; return the most that were counted: SQS's counts are estimates."""
    counts = [0]

    def most() -> int:
        counts.append(trial.sandbox.client.queue(LEVELS).dead)
        return max(counts)

    trial.wait("letting jobs fail for good", most, of=of, until=until)
    return max(counts)


def _put_back(trial: Trial, queue: str | None, count: int) -> int:
    """Put back so many dead letters, by as many redrives as that takes: each ends with what SQS told it is there."""
    moved = [0]

    def more() -> int:
        moved.append(trial.sandbox.redrive(queue))
        return sum(moved)

    trial.wait("putting back", more, of=count, until=trial.now + trial.grace)
    return sum(moved)


def _astray(jobs: Sequence[Job], last: Sequence[Landed]) -> int:
    """Return how many jobs came in the last level that are not of its priority, or are and did not: they take turns."""
    own = {job.id for number, job in enumerate(jobs, start=1) if number % PRIORITIES == 0}
    return len(own ^ (set(by_id(last)) & {job.id for job in jobs}))


def run_gone(trial: Trial) -> Found:
    """Delete the SQS queue of a level while jobs wait for it; bring it back, and put back what was parked."""
    with trial.sandbox.faults.level_gone(LEVELS, PRIORITIES):
        jobs, unparked = _parked(trial)
    parked = len(jobs) - unparked
    moved = _put_back(trial, None, parked)
    with trial.sandbox.inbox(LEVELS, priority=PRIORITIES) as landed:
        until = max(trial.now, jobs[-1].due) + trial.grace
        trial.wait("waiting for what was put back", lambda: len(by_id(landed)), of=moved, until=until)
    return Found(
        figures={
            "not parked": unparked,
            "not put back": max(0, parked - moved),
            "lost": lost(jobs, landed),
            "early": early(lateness(jobs, landed)),
        }
    )


def _parked(trial: Trial) -> tuple[list[Job], int]:
    """Schedule jobs for a level that is gone; return them, and how many were not parked in the end."""
    if not trial.sandbox.is_local:
        trial.pause("waiting until SQS has deleted a level", until=trial.now + _DELETED_AFTER)
    dues = trial.instants(_count(trial.scale), after=trial.table_after, within=_WITHIN)
    jobs = trial.schedule(LEVELS, GONE, dues, priorities=[PRIORITIES])
    left, until = list(jobs), dues[-1] + trial.grace
    trial.wait("waiting until jobs are parked", lambda: _count_parked(trial, jobs, left), of=len(jobs), until=until)
    return jobs, len(left)


def _count_parked(trial: Trial, jobs: Sequence[Job], left: list[Job]) -> int:
    """Take those that are parked from the end of the list, up to the first that is not; return how many went."""
    while left and trial.sandbox.client.get(left[-1].id).state is State.PARKED:
        left.pop()
    return len(jobs) - len(left)


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=10, full=50)


def sends_redrive(scale: Scale) -> Sends:
    # Each is received twice before it is a dead letter, moved, and received once more.
    return of_jobs(3 * _count(scale)) + Sends(http=200, invocations=200)


def sends_gone(scale: Scale) -> Sends:
    # One is looked up twice a second until all are parked.
    looks = 1200 + _count(scale)
    return of_jobs(3 * _count(scale)) + Sends(http=looks, invocations=looks, reads=3 * looks)


CHECK = Check(
    name=REDRIVE,
    promise="A job that fails as often as it may is a dead letter, and a redrive puts it back into its own level",
    bounds={
        "did not reach the dead-letter queue": NONE,
        "not put back": NONE,
        "lost": NONE,
        "came in another level": NONE,
    },
    run=run_redrive,
    sends=sends_redrive,
    lane=LEVELS,
)
CHECK_GONE = Check(
    name=GONE,
    promise="A job whose level was deleted is parked, and comes once the level is there and it is put back",
    bounds={"not parked": NONE, "not put back": NONE, "lost": NONE, "early": NONE},
    run=run_gone,
    sends=sends_gone,
    lane=LEVELS,
)
