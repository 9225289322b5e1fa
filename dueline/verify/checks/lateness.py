"""Lateness: how long after it was due a job is visible, by both routes, and how late the library's worker begins."""

from collections.abc import Sequence
from datetime import timedelta

from dueline.client.answers import Job
from dueline.verify.arrivals import early, lateness, lost, percentile
from dueline.verify.bound import NONE, SOME, Bound, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import PLAIN, PRECISE, Landed
from dueline.verify.trial import Scale, Trial, by_scale
from dueline.worker.received import ReceivedJob

NAME, PRECISELY = "lateness", "precise"
_WITHIN = {Scale.QUICK: timedelta(seconds=10), Scale.FULL: timedelta(seconds=60)}
_SOON = timedelta(seconds=5)


def run(trial: Trial) -> Found:
    """Schedule jobs by both routes at random fractions of a second; hold what SQS shows against their due times."""
    count, within = _count(trial.scale), _WITHIN[trial.scale]
    with trial.sandbox.inbox(PLAIN) as landed:
        direct = trial.schedule(PLAIN, NAME, trial.instants(count, after=_SOON, within=within))
        table = trial.schedule(PLAIN, NAME, trial.instants(count, after=trial.table_after, within=within))
        trial.wait_for([*direct, *table], landed)
        return Found(figures=_of_route("direct", direct, landed) | _of_route("table", table, landed))


def _of_route(route: str, jobs: Sequence[Job], landed: Sequence[Landed]) -> dict[str, float]:
    late = lateness(jobs, landed)
    return {
        f"{route}: jobs by this route": sum(job.route.name.lower() == route for job in jobs),
        f"{route}: lost": lost(jobs, landed),
        f"{route}: early": early(late),
        f"{route}: p50": percentile(late, 50),
        f"{route}: p95": percentile(late, 95),
    }


def run_precisely(trial: Trial) -> Found:
    """Let the library's worker process a precise queue; return how late it began, by AWS's own clock."""
    began: dict[str, ReceivedJob] = {}

    def note(job: ReceivedJob) -> None:
        began.setdefault(job.id, job)

    with trial.sandbox.working(PRECISE, note):
        dues = trial.instants(_precise(trial.scale), after=2 * _SOON, within=_WITHIN[trial.scale])
        jobs = trial.schedule(PRECISE, PRECISELY, dues)
        trial.wait("waiting for the worker", lambda: len(began), of=len(jobs), until=dues[-1] + trial.grace)
    ours = [began[job.id] for job in jobs if job.id in began]
    late = sorted(job.lateness for job in ours)
    return Found(
        figures={
            "lost": len(jobs) - len(ours),
            "certainly early": sum(job.lateness_at_most < 0 for job in ours),
            "p95": percentile(late, 95),
        }
    )


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=60, full=5000)


def _precise(scale: Scale) -> int:
    return by_scale(scale, quick=30, full=1000)


def sends(scale: Scale) -> Sends:
    return of_jobs(2 * _count(scale))


def sends_precisely(scale: Scale) -> Sends:
    return of_jobs(_precise(scale))


_BOUNDS = {
    "jobs by this route": SOME,
    "lost": NONE,
    "early": NONE,
    "p50": Bound(most=1.0, unit="s", gap=Gap.PACE),
    "p95": Bound(most=1.5, unit="s", gap=Gap.PACE),
}
CHECK = Check(
    name=NAME,
    promise="No job is early or lost; one is visible within about a second of its due time, by either route",
    bounds={f"{route}: {name}": bound for route in ("direct", "table") for name, bound in _BOUNDS.items()},
    run=run,
    sends=sends,
    lane=PLAIN,
)
CHECK_PRECISE = Check(
    name=PRECISELY,
    promise="The library's worker begins a job of a precise queue within tens of milliseconds, and never early",
    bounds={"lost": NONE, "certainly early": NONE, "p95": Bound(most=0.05, unit="s", gap=Gap.PACE)},
    run=run_precisely,
    sends=sends_precisely,
    lane=PRECISE,
)
