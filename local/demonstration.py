"""The demonstration: schedule a handful of jobs, let examples/worker.py process them, and check how each ends."""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import Any

from dueline import Client, State
from dueline.core import instant
from local.deploy import DeploymentError
from local.running import Running
from local.template import ROOT

QUEUE, SCHEDULE = "emails", "digest"
WORKER = "examples.worker:worker"
GRACE_SECONDS = 60.0
REPEAT_SECONDS = 1.5
SUCCEEDED, RETRIED, FAILED = "succeeded", "retried", "failed"


@dataclass(kw_only=True, slots=True)
class Shown:
    """A job of the demonstration: how it is to end, by which outcomes; its starts and outcomes so far."""

    what: str
    due: datetime
    expected: tuple[str, ...] = (SUCCEEDED,)
    starts: list[datetime] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    is_cancelled: bool = False

    @property
    def lateness(self) -> float:
        """Seconds from due to its first start, negative if that was early."""
        return (self.starts[0] - self.due).total_seconds()

    def faults(self) -> dict[str, bool]:
        """Return each fault, and whether the job has it. A repeat after its end is none: delivery is at least once."""
        has_succeeded = SUCCEEDED in self.outcomes
        return {
            "lost": SUCCEEDED in self.expected and not has_succeeded,
            "early": any(start < self.due for start in self.starts),
            "started after a cancel": self.is_cancelled and bool(self.starts),
            "unexpected": has_succeeded and tuple(self.outcomes[: len(self.expected)]) != self.expected,
        }


class Demonstration:
    """Schedules jobs in a running deployment, and follows them in the worker's log; `say` gets each line to show."""

    def __init__(self, run: Running, *, say: Callable[[str], None]) -> None:
        self.jobs: dict[str, Shown] = {}
        self._run, self._say = run, say
        self._env = {**os.environ, **run.endpoints.to_env()}
        self._client = Client.connect(run.endpoints.name, url=run.endpoints.api)
        self._log = SimpleQueue[dict[str, Any]]()
        self._works = False

    def play(self) -> None:
        """Schedule, cancel, move and put back, until each job has succeeded that should, or is given up as lost."""
        with self._client, self._working():
            self._follow_until(lambda: self._works)
            self._say("the first job, for which functions and worker start up:")
            self._schedule("welcome ann", 0)
            self._follow_until(self._all_succeeded)
            self._say("the others:")
            self._schedule_others(self._run.deployment.direct_horizon)
            self._follow_until(lambda: any(FAILED in job.outcomes for job in self.jobs.values()))
            self._redrive()
            last = max(job.due for job in self.jobs.values())
            self._follow_until(self._all_succeeded, due=last)
            # By then a job that was cancelled would have come.
            self._follow_until(lambda: datetime.now(UTC) > last + timedelta(seconds=REPEAT_SECONDS), due=last)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Run the worker as a user does, and read its log, until the context ends."""
        self._say(f"$ dueline worker {WORKER}")
        command = [sys.executable, "-m", "dueline", "worker", WORKER, "--log", "json"]
        env = {**self._env, "POWERTOOLS_LOG_LEVEL": "DEBUG"}  # which has the starts
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as worker:
            threading.Thread(target=self._read, args=(worker,), daemon=True).start()
            try:
                yield
            finally:
                worker.kill()  # SIGTERM would wait until its poll ends, and all ends here

    def _read(self, worker: "subprocess.Popen[str]") -> None:
        for line in worker.stdout or ():
            if line.startswith("{"):  # other lines are what the e-mails say
                self._log.put(json.loads(line))
        self._log.put({"message": "ended"})

    def _all_succeeded(self) -> bool:
        return not any(job.faults()["lost"] for job in self.jobs.values())

    def _schedule_others(self, horizon: float) -> None:
        """Schedule jobs by both routes: those due within the horizon go straight to SQS, the others by the table."""
        self._schedule("welcome bob", 4)
        self.jobs[self._schedule("receipt fay", 0, failures=2)].expected = (RETRIED, RETRIED, SUCCEEDED)
        self.jobs[self._schedule("welcome gil", 0, failures=2)].expected = (RETRIED, FAILED, SUCCEEDED)
        self._schedule("welcome cid", horizon + 1)
        self._cancel(self._schedule("welcome dan", horizon + 2))
        self._move(self._schedule("welcome eve", 90 * 86_400, key="eve"), key="eve")
        if SCHEDULE in self._run.deployment.queues[QUEUE].schedules:
            run = self._client.schedules(QUEUE).run(SCHEDULE)
            self._add(run.id, Shown(what=SCHEDULE, due=run.scheduled_for), "run now", "a schedule of queues.yaml")

    def _schedule(self, what: str, delay: float, *, failures: int = 0, key: str | None = None) -> str:
        kind, name = what.split()
        payload = {"to": f"{name}@example.com", "failures": failures}
        job = self._client.schedule(QUEUE, payload, kind=kind, delay=delay, key=key)
        self._add(job.id, Shown(what=what, due=job.due), "scheduled", f"route: {job.route.name.lower()}")
        return job.id

    def _cancel(self, id: str) -> None:
        job = self.jobs[id]
        job.is_cancelled, job.expected = self._client.cancel(id) == State.CANCELLED, ()
        self._say(f"{'cancelled' if job.is_cancelled else 'too late to cancel':<11}{job.what}")

    def _move(self, id: str, *, key: str) -> None:
        """Move a job by its key. It has another id then."""
        what = self.jobs.pop(id).what
        job = self._client.reschedule(queue=QUEUE, key=key, delay=6)
        self._add(job.id, Shown(what=what, due=job.due), "moved", "by its key")

    def _add(self, id: str, job: Shown, deed: str, about: str) -> None:
        self.jobs[id] = job
        due, is_soon = instant.text(job.due), job.due < datetime.now(UTC) + timedelta(minutes=5)
        self._say(f"{deed:<11}{job.what:<13}due {due[11:-1] if is_soon else due[:10]:<14}{about}")

    def _redrive(self) -> None:
        for typed in (["dead", QUEUE, "--payload"], ["dead", QUEUE, "--retry", "--yes"]):
            self._say(f"$ dueline {' '.join(typed)}")
            command = [sys.executable, "-m", "dueline", *typed]
            done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
            for line in (done.stdout + done.stderr).splitlines():
                self._say(f"    {line}".rstrip())

    def _follow_until(self, is_so: Callable[[], bool], *, due: datetime | None = None) -> None:
        """Follow the log until something is so, or a minute after it is due. Raises DeploymentError if it ends."""
        latest = (due or datetime.now(UTC)) + timedelta(seconds=GRACE_SECONDS)
        while not is_so() and datetime.now(UTC) < latest:
            while not self._log.empty():
                self._follow(self._log.get())
            time.sleep(0.05)

    def _follow(self, line: dict[str, Any]) -> None:
        """Note what the worker logs of a job, and say it. The schedule may have runs of its own, which are not ours."""
        event, job = line["message"], self.jobs.get(line.get("job", ""))
        self._works |= event == "opened"
        if event == "ended":
            raise DeploymentError(f"the worker {WORKER} ended before its jobs did")
        if job is None:
            return
        if event == "started":
            job.starts.append(datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z"))
        elif event in (SUCCEEDED, RETRIED, FAILED):
            job.outcomes.append(event)
            self._say(f"{event:<11}{job.what:<13}{_how(line, job)}")


def _how(line: dict[str, Any], job: Shown) -> str:
    """Return how a job ended: its first attempt with its lateness, another with its number, a failed one with why."""
    is_first = len(job.outcomes) == 1
    how = f"{job.lateness * 1000:.0f} ms after it was due" if is_first else f"at attempt {line['attempt']}"
    if line["message"] == SUCCEEDED:
        return f"{how}, once it was put back" if FAILED in job.outcomes else how
    after = f"again in {line['delay']} s" if line["message"] == RETRIED else "into the dead-letter queue"
    return f"{how}: {line.get('error', '')}: {line.get('reason', '')}: {after}"


def summary_of(jobs: Sequence[Shown]) -> tuple[str, bool]:
    """Return the counts of jobs and their lateness as text, and whether none has a fault."""
    counts = {
        "scheduled": len(jobs),
        "succeeded": sum(SUCCEEDED in job.outcomes for job in jobs),
        "cancelled": sum(job.is_cancelled for job in jobs),
        "retries": sum(job.outcomes.count(RETRIED) for job in jobs),
        "dead letters": sum(job.outcomes.count(FAILED) for job in jobs),
        **{fault: sum(job.faults()[fault] for job in jobs) for fault in Shown(what="", due=instant.EPOCH).faults()},
    }
    text = "  ".join(f"{name} {count}" for name, count in counts.items())
    if late := [job.lateness * 1000 for job in jobs[1:] if job.starts]:
        text += f"\nlateness, but for the first: median {statistics.median(late):.0f} ms, most {max(late):.0f} ms"
    return text, not any(any(job.faults().values()) for job in jobs)
