"""Faults: something that Dueline rests on is broken for minutes, and whole again; nothing is lost."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

from dueline.client.answers import Job
from dueline.verify.arrivals import lateness, lost, percentile
from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import PLAIN, Sandbox
from dueline.verify.trial import Scale, Trial, by_scale

# How many ticks are missed, or how long nothing is written, at most.
_STEP_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What is broken, and for how long at the full scale."""

    name: str
    promise: str
    lasts: timedelta
    broken: Callable[[Sandbox], AbstractContextManager[None]]
    gap: Gap | None = None

    def run(self, trial: Trial) -> Found:
        """Schedule jobs before and while it is broken; return what of them did not come."""
        with trial.sandbox.inbox(PLAIN) as landed:
            jobs = trial.schedule(
                PLAIN, self.name, trial.instants(_count(trial), after=trial.table_after, within=trial.spread)
            )
            with self.broken(trial.sandbox):
                meanwhile, refused = self._schedule_meanwhile(trial)
            trial.wait_for([*jobs, *meanwhile], landed)
            late = lateness([*jobs, *meanwhile], landed)
            return Found(
                figures={
                    "accepted": len(jobs) + len(meanwhile),
                    "lost": lost([*jobs, *meanwhile], landed),
                    "early": sum(each < 0 for each in late),
                },
                notes=[
                    f"{len(meanwhile)} jobs were accepted while it was broken, {refused} refused",
                    f"the latest job was {percentile(late, 100):.1f} s late",
                ],
            )

    def _schedule_meanwhile(self, trial: Trial) -> tuple[list[Job], int]:
        """Go on scheduling as long as the fault lasts; return what was accepted, and how many were not."""
        accepted, refused, number = list[Job](), 0, _count(trial)
        lasts = self.lasts if trial.scale is Scale.FULL else self.lasts / 3
        begun = trial.now
        while trial.now < begun + lasts:
            trial.tell(f"{self.name}: broken", int((trial.now - begun).total_seconds()), int(lasts.total_seconds()))
            new = trial.new_job(self.name, number, at=trial.now + trial.table_after)
            (result,) = trial.sandbox.client.schedule_many(PLAIN, [new])
            number += 1
            if isinstance(result, Job):
                accepted.append(result)
            else:
                refused += 1
            trial.sleep(_STEP_SECONDS)
        return accepted, refused

    def sends(self, scale: Scale) -> Sends:
        """Return what it sends at most: tries are repeated while it is broken."""
        tries = self.lasts.total_seconds() / _STEP_SECONDS
        return of_jobs(int(_of_scale(scale) + tries), calls=10 * tries)

    @property
    def check(self) -> Check:
        return Check(
            name=self.name,
            promise=self.promise,
            bounds={"accepted": SOME, "lost": NONE, "early": NONE},
            run=self.run,
            sends=self.sends,
            gap=self.gap,
        )


def _of_scale(scale: Scale) -> int:
    return by_scale(scale, quick=30, full=300)


def _count(trial: Trial) -> int:
    return _of_scale(trial.scale)


CHECKS = tuple(
    fault.check
    for fault in (
        Fault(
            name="schedule-off",
            promise="Nothing is lost when the schedule of a queue's ticks is disabled for three minutes",
            lasts=timedelta(minutes=3),
            broken=lambda sandbox: sandbox.faults.schedule_off(PLAIN),
            gap=Gap.SCHEDULER,
        ),
        Fault(
            name="ticks-stopped",
            promise="Nothing is lost when no tick can run for two minutes",
            lasts=timedelta(minutes=2),
            broken=lambda sandbox: sandbox.faults.stopped("tick"),
        ),
        Fault(
            name="table-denied",
            promise="Nothing that was accepted is lost when the table cannot be written for five minutes",
            lasts=timedelta(minutes=5),
            broken=lambda sandbox: sandbox.faults.table_denied("api", "ingest"),
            gap=Gap.IAM,
        ),
    )
)
