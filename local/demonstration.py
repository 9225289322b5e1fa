"""The demonstration: schedule a handful of jobs over HTTP, take two back, and watch the others land."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from local.consumer import Landed, consuming
from local.running import Running

GRACE_SECONDS = 60.0
REPEAT_SECONDS = 1.5


@dataclass(kw_only=True, slots=True)
class Scheduled:
    """A job of the demonstration, and where it landed."""

    what: str
    queue: str
    id: str
    due: datetime
    route: str
    cancelled: bool = False
    landed: list[Landed] = field(default_factory=list)

    @property
    def is_lost(self) -> bool:
        return not self.cancelled and not self.landed

    @property
    def is_early(self) -> bool:
        return any(landed.lateness < 0 for landed in self.landed)

    @property
    def came_after_cancel(self) -> bool:
        return self.cancelled and bool(self.landed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """A job to schedule: due in `delay` seconds, to be taken back at once if `cancel`."""

    what: str
    queue: str
    delay: float
    cancel: bool = False


def wishes(queues: list[str], *, horizon: float) -> list[Wish]:
    """Return the jobs to show: both routes, two queues (the same one twice where there is but one), two cancels."""
    one, two = queues[0], queues[min(1, len(queues) - 1)]
    return [
        Wish(what="now", queue=one, delay=0),
        Wish(what="in 3 s", queue=two, delay=3),
        Wish(what="in 6 s", queue=one, delay=6),
        Wish(what="by the table", queue=one, delay=horizon + 2),
        Wish(what="by the table", queue=two, delay=horizon + 3.5),
        Wish(what="by the table, cancelled", queue=two, delay=horizon + 4, cancel=True),
        Wish(what="in 90 days, cancelled", queue=one, delay=90 * 86_400, cancel=True),
    ]


class Demonstration:
    """Schedules jobs in a running deployment and follows them; `on_change` is called whenever there is news."""

    def __init__(self, run: Running, *, on_change: Callable[["Demonstration"], None]) -> None:
        self.jobs: list[Scheduled] = []
        self.refusal = ""
        self._run = run
        self._on_change = on_change
        self._http = httpx.Client(base_url=run.endpoints.api, timeout=30)
        self._arrived = threading.Lock()
        self._early_birds: list[Landed] = []

    def play(self) -> None:
        """Schedule, cancel, and wait until every job that should land has landed, or is given up as lost."""
        with ExitStack() as stack:
            stack.enter_context(self._http)
            for url in self._run.endpoints.queues.values():
                stack.enter_context(consuming(self._run.emulator, url, self._land))
            for wish in wishes(list(self._run.endpoints.queues), horizon=self._run.deployment.direct_horizon):
                self._schedule(wish)
            self._ask_nonsense()
            self._wait()

    def _schedule(self, wish: Wish) -> None:
        path = f"/queues/{wish.queue}/jobs"
        answer = self._answer("POST", path, {"payload": {"what": wish.what}, "delay": wish.delay})
        due = datetime.fromisoformat(answer["due"])
        job = Scheduled(what=wish.what, queue=wish.queue, id=answer["id"], due=due, route=answer["route"])
        if wish.cancel:
            job.cancelled = self._answer("DELETE", f"{path}/{job.id}")["state"] == "cancelled"
        with self._arrived:
            self.jobs.append(job)
            job.landed += [bird for bird in self._early_birds if bird.id == job.id]
        self._on_change(self)

    def _ask_nonsense(self) -> None:
        queue = next(iter(self._run.endpoints.queues))
        answer = self._http.post(f"/queues/{queue}/jobs", json={"payload": 1, "at": "tomorrow"})
        self.refusal = f"{answer.status_code}: {answer.json()['detail']}"
        self._on_change(self)

    def _answer(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self._http.request(method, path, json=body)
        answer.raise_for_status()
        job: dict[str, Any] = answer.json()
        return job

    def _land(self, landed: Landed) -> None:
        with self._arrived:
            known = [job for job in self.jobs if job.id == landed.id]
            if known:
                known[0].landed.append(landed)
            else:
                self._early_birds.append(landed)
        self._on_change(self)

    def _wait(self) -> None:
        """Wait until the last job to see is due, those that were cancelled included, and a little longer."""
        last = max(job.due for job in self.jobs if job.due < datetime.now(UTC) + timedelta(minutes=5))
        while datetime.now(UTC) < last + timedelta(seconds=GRACE_SECONDS):
            remaining = last + timedelta(seconds=REPEAT_SECONDS) - datetime.now(UTC)
            if remaining <= timedelta(0) and not any(job.is_lost for job in self.jobs):
                return
            self._on_change(self)
            time.sleep(0.1)
