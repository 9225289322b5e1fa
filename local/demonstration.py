"""The demonstration: schedule a handful of jobs over HTTP, take two back, and watch the others land."""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from dueline.core import instant
from local.emulator import Emulator
from local.running import Running

_LONG_POLL_SECONDS = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Landed:
    """A job that a consumer received, with its message group and its run of a schedule, if it has one."""

    id: str
    payload: str
    due: datetime
    at: datetime
    group: str | None = None
    run: str | None = None

    @property
    def lateness(self) -> float:
        """Seconds from due to received."""
        return (self.at - self.due).total_seconds()


@contextmanager
def consuming(emulator: Emulator, url: str, on_job: Callable[[Landed], None]) -> Iterator[None]:
    """Receive and delete the messages of a queue in a thread, handing each to `on_job`, until the context ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_consume, args=(emulator, url, on_job, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _consume(emulator: Emulator, url: str, on_job: Callable[[Landed], None], stop: threading.Event) -> None:
    sqs = emulator.client("sqs")
    while not stop.is_set():
        answer = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=_LONG_POLL_SECONDS,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        at = datetime.now(UTC)
        for message in answer.get("Messages", []):
            attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
            due = datetime.fromisoformat(attributes["dueline-due"])
            group = message.get("Attributes", {}).get("MessageGroupId")
            run = attributes.get("dueline-schedule")
            on_job(Landed(id=attributes["dueline-id"], payload=message["Body"], due=due, at=at, group=group, run=run))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


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

    def __str__(self) -> str:
        return f"{self.queue:<10} {self.what:<24} {self.route:<7}"

    @property
    def is_lost(self) -> bool:
        return not self.cancelled and not self.landed

    @property
    def is_early(self) -> bool:
        return any(landed.lateness < 0 for landed in self.landed)

    @property
    def came_after_cancel(self) -> bool:
        return self.cancelled and bool(self.landed)


def planned_jobs(queues: Sequence[str], *, horizon: float) -> list[tuple[str, str, float, bool]]:
    """Return the jobs to show: what each is, its queue, its delay in seconds, and whether it is to be cancelled.

    Both routes, two queues (the same one twice where there is but one), and two cancels.
    """
    one, two = queues[0], queues[min(1, len(queues) - 1)]
    return [
        ("now", one, 0, False),
        ("in 3 s", two, 3, False),
        ("in 6 s", one, 6, False),
        ("by the table", one, horizon + 2, False),
        ("by the table", two, horizon + 3.5, False),
        ("by the table, cancelled", two, horizon + 4, True),
        ("in 90 days, cancelled", one, 90 * 86_400, True),
    ]


class Demonstration:
    """Schedules jobs in a running deployment and follows them; `say` gets a line for each event."""

    def __init__(self, run: Running, *, say: Callable[[str], None]) -> None:
        self.jobs: list[Scheduled] = []
        self._run, self._say = run, say
        self._http = httpx.Client(base_url=run.endpoints.api, timeout=300)
        self._lock = threading.Lock()
        # By the jobs' ids: one may land before it is known that it is scheduled.
        self._landed: dict[str, list[Landed]] = defaultdict(list)
        self._reported: set[Landed] = set()

    def play(self) -> None:
        """Schedule, cancel, and wait until every job that should land has landed, or is given up as lost."""
        with ExitStack() as stack:
            stack.enter_context(self._http)
            for url in self._run.endpoints.queues.values():
                stack.enter_context(consuming(self._run.emulator, url, self._land))
            queues = list(self._run.endpoints.queues)
            for planned in planned_jobs(queues, horizon=self._run.deployment.direct_horizon):
                self._schedule(*planned)
            self._send_invalid_job(queues[0])
            self._wait()

    def _schedule(self, what: str, queue: str, delay: float, cancel: bool) -> None:
        path = f"/queues/{queue}/jobs"
        answer = self._answer("POST", path, {"payload": {"what": what}, "delay": delay})
        id, due = answer["id"], datetime.fromisoformat(answer["due"])
        with self._lock:
            landed = self._landed[id]
        job = Scheduled(what=what, queue=queue, id=id, due=due, route=answer["route"], landed=landed)
        self.jobs.append(job)
        self._say(f"scheduled  {job} due {instant.text(due)[:10] if cancel else instant.text(due)[11:-1]}")
        if cancel:
            job.cancelled = self._answer("DELETE", f"{path}/{id}")["state"] == "cancelled"
            self._say(f"cancelled  {job}" if job.cancelled else f"too late to cancel  {job}")
        self._report()

    def _send_invalid_job(self, queue: str) -> None:
        answer = self._http.post(f"/queues/{queue}/jobs", json={"payload": 1, "at": "tomorrow"})
        self._say(f"a malformed request was refused with {answer.status_code}: {answer.json()['detail']}")

    def _answer(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self._http.request(method, path, json=body)
        answer.raise_for_status()
        job: dict[str, Any] = answer.json()
        return job

    def _land(self, landed: Landed) -> None:
        with self._lock:
            self._landed[landed.id].append(landed)

    def _report(self) -> None:
        """Say what has landed since the last time."""
        for job in self.jobs:
            for landed in [each for each in job.landed if each not in self._reported]:
                self._reported.add(landed)
                self._say(f"landed     {job} {landed.lateness * 1000:+5.0f} ms")

    def _wait(self) -> None:
        """Wait until the last job to see is due, those that were cancelled included, and a little longer."""
        last = max(job.due for job in self.jobs if job.due < datetime.now(UTC) + timedelta(minutes=5))
        while datetime.now(UTC) < last + timedelta(seconds=GRACE_SECONDS):
            self._report()
            remaining = last + timedelta(seconds=REPEAT_SECONDS) - datetime.now(UTC)
            if remaining <= timedelta(0) and not any(job.is_lost for job in self.jobs):
                return
            time.sleep(0.1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Counts of jobs, and lateness in seconds. `broken` is a 200 cancel whose job arrived all the same."""

    scheduled: int
    delivered: int
    cancelled: int
    lost: int
    early: int
    broken: int
    p50: float
    p95: float
    longest: float

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.early or self.broken)

    def __str__(self) -> str:
        return (
            f"scheduled {self.scheduled}  delivered {self.delivered}  cancelled {self.cancelled}"
            f"  lost {self.lost}  early {self.early}  delivered after a cancel {self.broken}\n"
            f"lateness p50 {self.p50 * 1000:.0f} ms  p95 {self.p95 * 1000:.0f} ms  max {self.longest * 1000:.0f} ms"
        )


def summary_of(jobs: Sequence[Scheduled]) -> Summary:
    lateness = sorted(job.landed[0].lateness for job in jobs if job.landed)
    return Summary(
        scheduled=len(jobs),
        delivered=sum(bool(job.landed) for job in jobs),
        cancelled=sum(job.cancelled for job in jobs),
        lost=sum(job.is_lost for job in jobs),
        early=sum(job.is_early for job in jobs),
        broken=sum(job.came_after_cancel for job in jobs),
        p50=percentile(lateness, 50),
        p95=percentile(lateness, 95),
        longest=percentile(lateness, 100),
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the least of the ordered values that so many percent of them do not exceed; NaN if there are none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan
