"""Cancels and moves across the fence, where some of the jobs are being handed over and others are not yet."""

from collections.abc import Sequence
from datetime import timedelta

from dueline.client.answers import Job
from dueline.errors import AlreadyFinished, DuelineError
from dueline.model.job import State
from dueline.verify.arrivals import by_id, ids_by_number
from dueline.verify.bound import NONE, Bound, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import MOVED, NEIGHBOUR, Landed
from dueline.verify.trial import NotScheduled, Scale, Trial, by_scale

CANCELS, MOVES = "cancels", "moves"
# On either side of the fence, which goes on while they are asked for.
_SOME = Bound(least=1, gap=Gap.PACE)
# What SQS brings again comes within its visibility timeout; what is broken comes at its due time.
_REPEATS = timedelta(seconds=3)
_LATER = timedelta(seconds=10)


def run_cancels(trial: Trial) -> Found:
    """Cancel every other job while the fence is among their due times; see that none comes that was promised not to."""
    with trial.sandbox.inbox(NEIGHBOUR) as landed:
        jobs = _jobs_around_the_fence(trial, NEIGHBOUR, CANCELS, 2 * _cancels(trial.scale))
        _wait_for_the_fence(trial, jobs)
        trial.tell("cancelling", 0, len(jobs) // 2)
        states = trial.sandbox.client.cancel_many(job.id for job in jobs[::2])
        trial.wait_for(jobs[1::2], landed)
        trial.pause("waiting for what must not come", until=jobs[-1].due + _REPEATS)
        return _found_of_cancels(jobs, states, landed)


def _found_of_cancels(jobs: Sequence[Job], states: Sequence[State | DuelineError], landed: Sequence[Landed]) -> Found:
    came, cancelled = by_id(landed), list(zip(jobs[::2], states, strict=True))
    promised = [job for job, state in cancelled if state is State.CANCELLED]
    return Found(
        figures={
            "cancelled, a promise": len(promised),
            "cancel requested, no promise": sum(state is State.CANCEL_REQUESTED for state in states),
            "cancels that failed": sum(isinstance(state, DuelineError) for state in states),
            "came though it was promised not to": sum(job.id in came for job in promised),
            "not cancelled, and lost": sum(job.id not in came for job in jobs[1::2]),
        }
    )


def run_moves(trial: Trial) -> Found:
    """Move jobs while the fence is among their due times; see that each comes once, old or new."""
    with trial.sandbox.inbox(MOVED) as landed:
        jobs = _jobs_around_the_fence(trial, MOVED, MOVES, _moves(trial.scale))
        _wait_for_the_fence(trial, jobs)
        trial.tell("moving", 0, len(jobs))
        moved = [_Move(trial, job).run() for job in jobs]
        last = max(each.due for each in [*jobs, *(new for new in moved if new)])

        def came() -> int:
            return len(ids_by_number(landed, run=trial.run, check=MOVES))

        trial.wait("waiting for moved jobs", came, of=len(jobs), until=last + trial.grace)
        trial.pause("waiting for what must not come", until=last + _REPEATS)
        return _found_of_moves(trial, jobs, moved, landed)


class _Move:
    """The move of one job, to some seconds from now, or beyond the fence."""

    def __init__(self, trial: Trial, job: Job) -> None:
        self._trial, self._job = trial, job

    def run(self) -> Job | None:
        """Return the job that took its place, None where it had left already. Raises NotScheduled."""
        far = self._trial.table_after + _LATER
        at = self._trial.now + self._trial.chance.choice([_LATER, far])
        try:
            return self._trial.sandbox.client.reschedule(self._job.id, at=at)
        except AlreadyFinished:
            return None
        except DuelineError as error:
            raise NotScheduled(f"a job was not moved: {error}") from error


def _found_of_moves(trial: Trial, jobs: Sequence[Job], moved: Sequence[Job | None], landed: Sequence[Landed]) -> Found:
    came, ids = by_id(landed), ids_by_number(landed, run=trial.run, check=MOVES)
    pairs = list(zip(jobs, moved, strict=True))
    return Found(
        figures={
            "moved": sum(new is not None for new in moved),
            "refused, it had left": sum(new is None for new in moved),
            "came, though it was moved away": sum(old.id in came for old, new in pairs if new),
            "came under two ids": sum(len(each) > 1 for each in ids.values()),
            "lost": sum((new or old).id not in came for old, new in pairs),
        }
    )


def _jobs_around_the_fence(trial: Trial, queue: str, check: str, count: int) -> list[Job]:
    return trial.schedule(queue, check, trial.instants(count, after=trial.table_after, within=trial.spread))


def _wait_for_the_fence(trial: Trial, jobs: Sequence[Job]) -> None:
    """Wait until a tick has raised the fence past some of the jobs. Raises NotScheduled when none does in time."""
    third, last = jobs[len(jobs) // 3].due, jobs[-1].due

    def is_among_them() -> int:
        fence = trial.sandbox.fence(jobs[0].queue)
        return int(fence is not None and fence >= third)

    trial.wait("waiting for the fence", is_among_them, of=1, until=last)
    if not is_among_them():
        raise NotScheduled("no tick raised the fence of the queue: its schedule does not fire, or its ticks fail")


def _cancels(scale: Scale) -> int:
    return by_scale(scale, quick=60, full=500)


def _moves(scale: Scale) -> int:
    return by_scale(scale, quick=30, full=200)


def sends_cancels(scale: Scale) -> Sends:
    return of_jobs(3 * _cancels(scale))


def sends_moves(scale: Scale) -> Sends:
    # A transaction is paid twice.
    return of_jobs(3 * _moves(scale), calls=2 * _moves(scale))


CHECK = Check(
    name=CANCELS,
    promise="A job whose cancel was answered with `cancelled` never comes, also where a tick is at it",
    bounds={
        "cancelled, a promise": _SOME,
        "cancel requested, no promise": _SOME,
        "cancels that failed": NONE,
        "came though it was promised not to": NONE,
        "not cancelled, and lost": NONE,
    },
    run=run_cancels,
    sends=sends_cancels,
    lane=NEIGHBOUR,
)
CHECK_MOVES = Check(
    name=MOVES,
    promise="A job that is moved comes once: the new one if the move was answered so, else the old one",
    bounds={
        "moved": _SOME,
        "refused, it had left": _SOME,
        "came, though it was moved away": NONE,
        "came under two ids": NONE,
        "lost": NONE,
    },
    run=run_moves,
    sends=sends_moves,
    lane=MOVED,
)
