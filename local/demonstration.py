"""The demonstration: schedule a handful of jobs, let examples/worker.py process them, and check how each ends."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dueline import Client, Job, State
from dueline.core import instant
from local.deploy import DeploymentError
from local.running import Running
from local.template import ROOT

QUEUE, SCHEDULE = "emails", "digest"
WORKER = "examples.worker:worker"


@dataclass(kw_only=True, slots=True)
class Shown:
    """A job of the demonstration: what it is called, and how it was when it was last looked up."""

    what: str
    job: Job
    is_cancelled: bool = False

    @property
    def is_lost(self) -> bool:
        return not self.is_cancelled and self.job.state != State.SUCCEEDED


class Demonstration:
    """Schedules jobs in a running deployment, and looks how they do, beside the log of a worker; `say` shows a line."""

    def __init__(self, run: Running, *, say: Callable[[str], None]) -> None:
        self._jobs: list[Shown] = []
        self._run, self._say, self.early = run, say, 0
        self._env = {**os.environ, **run.endpoints.to_env()}
        self._client = Client.connect(run.endpoints.name, url=run.endpoints.api)

    def play(self) -> tuple[str, bool]:
        """Schedule, cancel, move and put back, until each job has succeeded that should, or is given up as lost.

        Return how they ended, and whether none has a fault. Raises DeploymentError if the worker ends before.
        """
        with self._client, self._working():
            self._say("the first job, for which functions and worker start up:")
            self._schedule("welcome ann", 0)
            self._look_until(self._all_succeeded)
            self._say("the others:")
            dead = self._schedule_others(self._run.deployment.direct_horizon)
            self._look_until(lambda: dead.job.state == State.FAILED)
            self._redrive()
            last = max(each.job.due for each in self._jobs)
            # By then a job that was cancelled would have come.
            self._look_until(lambda: self._all_succeeded() and datetime.now(UTC) > last, due=last)
        return summary_of(self._jobs, early=self.early)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Run the worker as a user does, until the context ends."""
        self._say(f"$ dueline worker {WORKER}")
        command = [sys.executable, "-u", "-m", "dueline", "worker", WORKER, "--log", "text"]
        with subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=subprocess.PIPE, text=True) as self._worker:
            follower = threading.Thread(target=self.follow, args=(self._worker.stdout,))
            follower.start()
            try:
                yield
            finally:
                self._worker.kill()  # SIGTERM would wait until its poll ends, and all ends here
                follower.join()

    def follow(self, log: Iterable[str]) -> None:
        """Show a worker's log, and count what began early: `started` of a look-up may be earlier than it was."""
        for line in log:
            self._say(line.rstrip("\n"))
            self.early += "lateness=-" in line

    def _all_succeeded(self) -> bool:
        return not any(each.is_lost for each in self._jobs)

    def _schedule_others(self, horizon: float) -> Shown:
        """Schedule jobs by both routes: those due within the horizon go straight to SQS, the others by the table.

        Return the one that dies.
        """
        self._schedule("welcome bob", 4)
        self._schedule("receipt fay", 0, failures=2)
        dead = self._schedule("welcome gil", 0, failures=2)
        self._schedule("welcome cid", horizon + 1)
        dan = self._schedule("welcome dan", horizon + 2)
        dan.is_cancelled = self._client.cancel(dan.job.id) == State.CANCELLED
        self._say(f"{'cancelled' if dan.is_cancelled else 'too late to cancel':<11}{dan.what}")
        eve = self._schedule("welcome eve", 90 * 86_400, key="eve")
        # It has another id then.
        eve.job = self._client.reschedule(queue=QUEUE, key="eve", delay=6)
        self._say(f"moved      {eve.what}  due {instant.text(eve.job.due)}  by its key")
        run = self._client.schedules(QUEUE).run(SCHEDULE)
        self._jobs.append(Shown(what=SCHEDULE, job=self._client.get(run.id)))
        self._say(f"run now    {SCHEDULE}")
        return dead

    def _schedule(self, what: str, delay: float, *, failures: int = 0, key: str | None = None) -> Shown:
        kind, name = what.split()
        payload = {"to": f"{name}@example.com", "failures": failures}
        job = self._client.schedule(QUEUE, payload, kind=kind, delay=delay, key=key)
        self._say(f"scheduled  {what}  due {instant.text(job.due)}  route: {job.route.name.lower()}")
        self._jobs.append(Shown(what=what, job=job))
        return self._jobs[-1]

    def _redrive(self) -> None:
        for typed in (["dead", QUEUE, "--payload"], ["dead", QUEUE, "--retry", "--yes"]):
            self._say(f"$ dueline {' '.join(typed)}")
            subprocess.run([sys.executable, "-m", "dueline", *typed], env=self._env, check=False)

    def _look_until(self, is_so: Callable[[], bool], *, due: datetime | None = None) -> None:
        """Look the jobs up until something is so, or a minute after it is due."""
        latest = (due or datetime.now(UTC)) + timedelta(minutes=1)
        while not is_so() and datetime.now(UTC) < latest:
            if self._worker.poll() is not None:
                raise DeploymentError(f"the worker {WORKER} ended before its jobs did")
            time.sleep(0.5)
            for each in self._jobs:
                if each.job.state != State.SUCCEEDED:
                    each.job = self._client.get(each.job.id)


def summary_of(jobs: Sequence[Shown], *, early: int) -> tuple[str, bool]:
    """Return the counts of jobs as text, and whether none has a fault."""
    lost, cancelled = sum(each.is_lost for each in jobs), sum(each.is_cancelled for each in jobs)
    started = sum(each.is_cancelled and each.job.state != State.CANCELLED for each in jobs)
    counts = {"scheduled": len(jobs), "succeeded": sum(each.job.state == State.SUCCEEDED for each in jobs)}
    faults = {"lost": lost, "early": early, "started after a cancel": started}
    text = "  ".join(f"{name} {count}" for name, count in {**counts, "cancelled": cancelled, **faults}.items())
    return text, not any(faults.values())
