"""The demonstration: schedule a handful of jobs over HTTP, take two back, and watch the others land."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import httpx
from rich.console import Console
from rich.live import Live
from rich.table import Table

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
class PlannedJob:
    """A job to schedule: due in `delay` seconds, to be taken back at once if `cancel`."""

    what: str
    queue: str
    delay: float
    cancel: bool = False


def planned_jobs(queues: list[str], *, horizon: float) -> list[PlannedJob]:
    """Return the jobs to show: both routes, two queues (the same one twice where there is but one), two cancels."""
    one, two = queues[0], queues[min(1, len(queues) - 1)]
    return [
        PlannedJob(what="now", queue=one, delay=0),
        PlannedJob(what="in 3 s", queue=two, delay=3),
        PlannedJob(what="in 6 s", queue=one, delay=6),
        PlannedJob(what="by the table", queue=one, delay=horizon + 2),
        PlannedJob(what="by the table", queue=two, delay=horizon + 3.5),
        PlannedJob(what="by the table, cancelled", queue=two, delay=horizon + 4, cancel=True),
        PlannedJob(what="in 90 days, cancelled", queue=one, delay=90 * 86_400, cancel=True),
    ]


class Demonstration:
    """Schedules jobs in a running deployment and follows them; `on_change` is called whenever there is news."""

    def __init__(self, run: Running, *, on_change: Callable[["Demonstration"], None]) -> None:
        self.jobs: list[Scheduled] = []
        self.refusal = ""
        self._run = run
        self._on_change = on_change
        self._http = httpx.Client(base_url=run.endpoints.api, timeout=300)
        self._arrived = threading.Lock()
        self._early_birds: list[Landed] = []

    def play(self) -> None:
        """Schedule, cancel, and wait until every job that should land has landed, or is given up as lost."""
        with ExitStack() as stack:
            stack.enter_context(self._http)
            for url in self._run.endpoints.queues.values():
                stack.enter_context(consuming(self._run.emulator, url, self._land))
            for planned in planned_jobs(list(self._run.endpoints.queues), horizon=self._run.deployment.direct_horizon):
                self._schedule(planned)
            self._send_invalid_job()
            self._wait()

    def _schedule(self, planned: PlannedJob) -> None:
        path = f"/queues/{planned.queue}/jobs"
        answer = self._answer("POST", path, {"payload": {"what": planned.what}, "delay": planned.delay})
        due = datetime.fromisoformat(answer["due"])
        job = Scheduled(what=planned.what, queue=planned.queue, id=answer["id"], due=due, route=answer["route"])
        if planned.cancel:
            job.cancelled = self._answer("DELETE", f"{path}/{job.id}")["state"] == "cancelled"
        with self._arrived:
            self.jobs.append(job)
            job.landed += [bird for bird in self._early_birds if bird.id == job.id]
        self._on_change(self)

    def _send_invalid_job(self) -> None:
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
            matching = [job for job in self.jobs if job.id == landed.id]
            if matching:
                matching[0].landed.append(landed)
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


def screen(console: Console) -> "LiveTable | Lines":
    """Return what fits the console: a live table on a terminal, lines in a pipe."""
    return LiveTable(console) if console.is_terminal else Lines(console)


class LiveTable:
    """A table that changes as jobs land."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, demonstration: Demonstration) -> None:
        table = Table("queue", "job", "route", "due (UTC)", "state", "lateness")
        table.caption = _refused(demonstration) if demonstration.refusal else None
        for job in list(demonstration.jobs):
            table.add_row(job.queue, job.what, job.route, _clock(job), *_state(job))
        self._live.update(table)


class Lines:
    """A line for each event, once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, demonstration: Demonstration) -> None:
        for job in list(demonstration.jobs):
            self._print(f"scheduled  {job.queue:<10} {job.what:<24} {job.route:<7} due {_clock(job)}")
            if job.cancelled:
                self._print(f"cancelled  {job.queue:<10} {job.what:<24} {job.id}")
            for landed in list(job.landed):
                self._print(
                    f"landed     {job.queue:<10} {job.what:<24} {job.route:<7} {landed.lateness * 1000:+5.0f} ms"
                )
        if demonstration.refusal:
            self._print(_refused(demonstration))

    def _print(self, line: str) -> None:
        if line not in self._printed:
            self._printed.add(line)
            self._console.print(line, highlight=False, soft_wrap=True)


def _refused(demonstration: Demonstration) -> str:
    return f"a malformed request was refused with {demonstration.refusal}"


def _clock(job: Scheduled) -> str:
    return instant.text(job.due)[11:-1] if not job.cancelled else instant.text(job.due)[:10]


def _state(job: Scheduled) -> tuple[str, str]:
    if job.landed:
        return "landed", f"{job.landed[0].lateness * 1000:+.0f} ms"
    if job.cancelled:
        return "cancelled", ""
    return "scheduled", f"due in {max(0.0, (job.due - datetime.now(UTC)).total_seconds()):.0f} s"
