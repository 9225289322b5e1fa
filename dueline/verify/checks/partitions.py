"""Partitions: deployments raise and lower their number while jobs are on their way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

from dueline.client.answers import Job
from dueline.model import instant
from dueline.model.job import JobId, Route
from dueline.verify.arrivals import again, early, lateness, lost
from dueline.verify.bound import NONE, SOME, Bound
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import MOVED, PARTITIONS_OF_MOVED, Deployed, Landed
from dueline.verify.trial import NotDeployed, Scale, Trial, by_scale

NAME = "partitions"
MOST, FEWER = 4, 2
# What the guard of a queue's stack says, and nothing else does.
_REFUSAL = "this would strand"
_SOON, _WITHIN = timedelta(seconds=5), timedelta(seconds=3)
# Longer than any deployment takes: nothing leaves before that is over.
_HELD = timedelta(hours=1)
_EVERY_SECONDS = 2.0
_COUNTED: Mapping[str, Bound] = {
    "partitions that took no job": NONE,
    "lowerings refused for their jobs": Bound(least=1, most=1),
    "lowered with jobs in them": NONE,
    "jobs in partitions that had gone": NONE,
}


@dataclass(kw_only=True, slots=True)
class _Journey:
    """From one number of partitions to another, and the jobs that are scheduled all the way."""

    trial: Trial
    landed: Sequence[Landed]
    jobs: list[Job] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)
    deployed: list[tuple[datetime, datetime]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    refused: int = 0

    def raise_to(self, partitions: int) -> None:
        """Deploy more partitions, and schedule until each of them has a job."""
        self._check(partitions, self._deploy(partitions, self.some))
        new = self._one_in_each(partitions, after=self.trial.table_after)
        self.figures["partitions that took no job"] += partitions - len(set(map(_partition, new)))
        self.jobs += new

    def lower_to(self, partitions: int) -> None:
        """Deploy fewer partitions once nothing is left in those that go: since the first try, none takes jobs."""
        self.wait()
        first = len(self.jobs)
        done = self._deploy(partitions, self.some)
        self.some(_count(self.trial.scale))
        self.figures["jobs in partitions that had gone"] += len(_from(self.jobs[first:], partitions))
        self._check(partitions, done)

    def try_to_lower_to(self, partitions: int) -> None:
        """Deploy fewer partitions while jobs are in those that would go; bring them once that was refused."""
        held = self._one_in_each(MOST, after=_HELD)
        done = self._deploy(partitions, self.direct)
        going = len(_from(held, partitions))
        self.figures["lowered with jobs in them"] += going if done.is_through else 0
        self.figures["lowerings refused for their jobs"] += not done.is_through
        if not done.is_through:
            self._check(partitions, replace(done, is_through=_REFUSAL in done.told))
            self.jobs += self.trial.sandbox.spread(self._bring, held)

    def back_to(self, partitions: int) -> None:
        """Deploy as many as there were: nobody schedules meanwhile, for whatever comes there then is in the way."""
        self.wait()
        self._check(partitions, self._deploy(partitions, lambda _: None))

    def wait(self) -> None:
        self.trial.wait_for(self.jobs, self.landed)

    def some(self, number: int) -> None:
        """Schedule so many by each route."""
        self._each(self.trial.instants(number, after=self.trial.table_after, within=_WITHIN))
        self.direct(number)

    def direct(self, number: int) -> None:
        self._each(self.trial.instants(number, after=_SOON, within=_WITHIN))

    def _each(self, dues: Sequence[datetime]) -> None:
        """Schedule jobs one by one: those of one request share a partition."""
        list(self.trial.sandbox.spread(lambda due: self._schedule(due, self.jobs), dues))

    def _schedule(self, due: datetime, into: list[Job]) -> None:
        new = self.trial.new_job(NAME, next(self.numbers), at=due)
        (answer,) = self.trial.sandbox.client.schedule_many(MOVED, [new])
        if isinstance(answer, Job):
            into.append(answer)
        else:
            self.refused += 1

    def _bring(self, job: Job) -> Job:
        return self.trial.sandbox.client.reschedule(job.id, at=self.trial.now + _SOON)

    def _one_in_each(self, partitions: int, *, after: timedelta) -> list[Job]:
        """Schedule until each of so many partitions has a job, or for a while; return the jobs.

        The HTTP API gives each its partition. A client does so itself, and knows of new ones within a minute.
        """
        jobs, trial = list[Job](), self.trial

        def reached() -> int:
            number = next(self.numbers)
            asked = {"payload": trial.payload(NAME, number), "at": instant.text(trial.now + after)}
            # Asked again, it is the same job: one that nobody knows would be in the way.
            body = {**asked, "key": f"{trial.run}-{NAME}-{number}"}
            jobs.append(Job.of(trial.sandbox.request("POST", f"/queues/{MOVED}/jobs", body).content))
            return len(set(map(_partition, jobs)))

        trial.wait("scheduling for each partition", reached, of=partitions, until=trial.now + trial.grace)
        return jobs

    def _check(self, partitions: int, done: Deployed) -> None:
        if not done.is_through:
            raise NotDeployed(f"{partitions} partitions: {done.told}")

    def _deploy(self, partitions: int, schedule: Callable[[int], None]) -> Deployed:
        """Schedule jobs, deploy, and go on scheduling until that is over."""
        schedule(_count(self.trial.scale))
        begun = self.trial.now
        with self.trial.sandbox.deploying(MOVED, partitions) as ended:
            while (done := ended()) is None:
                seconds = int((self.trial.now - begun).total_seconds())
                self.trial.tell(f"deploying {partitions} partitions, for {seconds} s", 0, 1)
                schedule(1)
                self.trial.sleep(_EVERY_SECONDS)
        self.deployed.append((begun, self.trial.now))
        return done

    def found(self, why: Sequence[str]) -> Found:
        meanwhile = [job for job in self.jobs if any(begun <= job.due <= ended for begun, ended in self.deployed)]
        routes = [job.route for job in self.jobs]
        return Found(
            figures={
                "jobs by the table": routes.count(Route.TABLE),
                "jobs direct": routes.count(Route.DIRECT),
                "due during a deployment": len(meanwhile),
                "lost": lost(self.jobs, self.landed),
                "early": early(lateness(self.jobs, self.landed)),
                "came twice": again(self.jobs, self.landed),
                "deployments that failed": len(why),
                **self.figures,
            },
            notes=[*why, *self._notes()],
        )

    def _notes(self) -> list[str]:
        took = ", ".join(f"{(ended - begun).total_seconds():.0f} s" for begun, ended in self.deployed)
        return [f"the deployments took {took}", f"{self.refused} jobs were refused, and their callers told"]


def run(trial: Trial) -> Found:
    """Raise, try to lower too soon, lower, raise again, and end where it began; see that each job comes once."""
    with trial.sandbox.inbox(MOVED) as landed:
        journey = _Journey(trial=trial, landed=landed)
        why = []
        try:
            journey.raise_to(MOST)
            journey.try_to_lower_to(FEWER)
            journey.lower_to(FEWER)
            journey.raise_to(MOST)
            journey.back_to(PARTITIONS_OF_MOVED)
        except NotDeployed as error:
            # What came of the jobs until then may say why.
            journey.wait()
            why = [str(error)]
        return journey.found(why)


def _from(jobs: Sequence[Job], partition: int) -> list[Job]:
    return [job for job in jobs if _partition(job) >= partition]


def _partition(job: Job) -> int:
    return JobId.parse(job.id).partition.number


def _count(scale: Scale) -> int:
    return by_scale(scale, quick=10, full=200)


def sends(scale: Scale) -> Sends:
    # Four deployments of up to a quarter of an hour, and what is scheduled until each partition has a job.
    jobs = 2 * (5 * _count(scale) + int(4 * 900 / _EVERY_SECONDS) + 200)
    return of_jobs(jobs, calls=jobs)


CHECK = Check(
    name=NAME,
    promise="Partitions are raised and lowered while jobs are on their way; none is lost, early or stranded",
    bounds={
        "jobs by the table": SOME,
        "jobs direct": SOME,
        "due during a deployment": SOME,
        "lost": NONE,
        "early": NONE,
        "came twice": NONE,
        "deployments that failed": NONE,
        **_COUNTED,
    },
    run=run,
    sends=sends,
)
