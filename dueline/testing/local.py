"""A deployment in memory for the tests of a service: its clients, its time, and what became of its jobs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from dueline import otel
from dueline.aws.direct_api import DirectApi, DirectDeployment
from dueline.client.async_client import AsyncClient
from dueline.client.client import Client
from dueline.client.models import ScheduledJob
from dueline.config.deployment import Deployment, load
from dueline.core.cancel import cancelled_among
from dueline.core.job import State
from dueline.core.message import ATTEMPTS, REASON, STACK, Message
from dueline.core.ports import Pointer
from dueline.core.request import Default
from dueline.operations.dead_letters import error_of
from dueline.testing.memory_deployment import MemoryDeployment
from dueline.testing.schedule_requests import ScheduleRequests
from dueline.testing.worker_run import Attempt, LambdaRun, QueueRun, connected, noting, noting_errors, the_only
from dueline.worker.events import Report
from dueline.worker.execution import Trace
from dueline.worker.handlers import Handlers
from dueline.worker.lambda_consumer import Consumer
from dueline.worker.runner import event_loop
from dueline.worker.worker import Environment, Worker

# What the code under test computes from the machine's clock has come by then: it may run for so long.
_AHEAD = timedelta(minutes=1)
_MOST_STEPS = 10_000
# Names, settings by name, or the path of a queues.yaml.
Queues = Sequence[str] | Mapping[str, Mapping[str, Any] | None] | Path


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadJob(ScheduledJob):
    """A job in its dead-letter queue: the name of its last `error`, the `reason`, and the number of `attempts`.

    `stack` is the end of the stack trace of what its handler raised, or "" where nothing was raised.
    """

    reason: str = ""
    stack: str = ""


class _LocalApi(DirectApi):
    """The calls of a direct client, and those about schedules besides, which on AWS only the HTTP API makes."""

    def __init__(self, deployment: MemoryDeployment) -> None:
        self._requests = ScheduleRequests(deployment)
        direct = DirectDeployment(deployed=deployment, published=deployment, settings=deployment.settings())
        super().__init__(lambda: direct, clock=deployment.clock)

    def requester(self) -> Callable[..., dict[str, Any]]:
        return self._requests


class Local:
    """A deployment in memory: the code that runs on AWS, over a table and queues in memory, in virtual time.

    `queues` are the names of its queues; or their settings by name, as in queues.yaml; or the path of a queues.yaml.
    `client` and `async_client` are what `Client.connect()` and `AsyncClient.connect()` return elsewhere. Time stands
    still until `advance` or `run` moves it. It starts `now`: by default a minute ahead of the machine's clock, so that
    an instant that code under test computes from that has come once as much virtual time has passed. Threads may share
    it, but for `advance` and `run`. `default` is that of `Client.connect`. Raises ConfigurationError for a file, and
    ValueError for settings, that are wrong.
    """

    def __init__(self, queues: Queues, *, now: datetime | None = None, default: Default | None = None) -> None:
        start = datetime.now(UTC).replace(microsecond=0) + _AHEAD if now is None else now
        if start.utcoffset() is None:
            raise ValueError(f"now is {start.isoformat()}: it must have a time zone")
        self._deployment = MemoryDeployment(_config(queues), start=start.astimezone(UTC))
        api = _LocalApi(self._deployment)
        self.client = Client(api, clock=self._deployment.clock, jitter=lambda: 0.5, default=default)
        self.async_client = AsyncClient(self.client)

    @property
    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return self._deployment.clock.now()

    def advance(
        self, *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """Move time on by so much, and return what it is then: jobs that come due reach their queues, none is run.

        A job reaches its queue when it is due, where on AWS that may be up to a second later.
        """
        by = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        if by < timedelta(0):
            raise ValueError(f"time is to move by {by}: it never goes back")
        self._deployment.advance_to(self.now + by)
        return self.now

    def scheduled(self, queue: str) -> list[ScheduledJob]:
        """Return the jobs that wait for their time, in order of it, but for those that were cancelled.

        Raises QueueNotFound.
        """
        self._deployment.settle()
        waiting = [
            each.message
            for level in self._deployment.levels(queue)
            for each in level.deliveries
            if each.visible > self.now and not each.receives
        ]
        jobs = {job.id: job for job in (*self.client.jobs(queue), *self._jobs_of(waiting, State.SCHEDULED))}
        return sorted(map(self._fetched, jobs.values()), key=lambda job: (job.due, job.id))

    def sent(self, queue: str) -> list[ScheduledJob]:
        """Return the jobs that have reached their queue, in order, those too that were run or cancelled since.

        Raises QueueNotFound.
        """
        self._deployment.settle()
        deliveries = [each for level in self._deployment.levels(queue) for each in level.history]
        there = sorted((each for each in deliveries if each.visible <= self.now), key=lambda each: each.visible)
        return [self._job_of(each.message, State.DISPATCHED) for each in there]

    def dead(self, queue: str) -> list[DeadJob]:
        """Return the jobs in the dead-letter queue, in the order in which they died. Raises QueueNotFound."""
        self._deployment.queue(queue)
        return [self._dead(each.message) for each in self._deployment.dead_letter_queue(queue).deliveries]

    def run(self, worker: Worker | Consumer, *, queue: str | None = None, fail_fast: bool = False) -> list[Attempt]:
        """Run what is due, and what comes due until the last retry has ended; return each attempt, in order.

        A Worker declares its schedules first, and runs the jobs of all its queues. A Lambda handler is invoked with
        those of `queue`, which may be left out where there is one. What handlers raise becomes a retry or a dead
        letter, as it does on AWS; with `fail_fast`, it is raised, unless it is Retry or Discard. Time moves on to each
        retry; without any, it stands still. A paused queue stays as it is. Raises RuntimeError after 10,000 requests: a
        handler may schedule the next job without end.
        """
        attempts, errors, deployment = list[Attempt](), list[BaseException](), self._deployment
        report, trace = noting(attempts, now=lambda: self.now), noting_errors(errors)
        with event_loop() as loop:
            if isinstance(worker, Consumer):
                name = the_only(list(deployment.registry.queues)) if queue is None else queue
                queues, levels = [name], deployment.levels(name)
                runs: list[QueueRun | LambdaRun] = [LambdaRun(self._invoker(worker, report, trace), levels)]
            else:
                handlers = worker._chosen(None if queue is None else [queue])
                queues = [each.queue for each in handlers]
                self._declare(worker, queues, report)
                of: dict[str, Any] = {"loop": loop, "trace": trace, "callbacks": worker._callbacks}
                runs = [self._queue_run(each, report, **of) for each in handlers]
            self._run(runs, queues, lambda: next((e for e in errors if fail_fast or _is_interrupt(e)), None))
        return attempts

    def invoke(self, handler: Consumer, event: dict[str, Any]) -> Any:
        """Return what a Lambda handler returns for an event, such as `sqs_event` makes, of a queue of this deployment.

        Raises QueueNotFound.
        """
        return self._invoker(handler, lambda _: None, otel.handling)(event)

    def _run(
        self,
        runs: "Sequence[QueueRun | LambdaRun]",
        queues: Sequence[str],
        error: Callable[[], BaseException | None],
    ) -> None:
        for _ in range(_MOST_STEPS):
            self._deployment.settle()
            is_done = not any(run.step() for run in runs)
            if fault := error():
                raise fault
            if not is_done:
                continue
            there = [e for queue in queues for level in self._deployment.levels(queue) for e in level.deliveries]
            ahead = [each for each in there if each.visible > self.now]
            if not any(each.receives for each in ahead):
                return
            self._deployment.advance_to(min([*self._deployment.times_ahead(), *(each.visible for each in ahead)]))
        raise RuntimeError(f"after {_MOST_STEPS} requests jobs are still due: does a handler schedule the next one?")

    def _queue_run(self, handlers: Handlers, report: Report, **of: Any) -> QueueRun:
        context, levels = (
            self._deployment.connect(handlers.queue, report=report),
            self._deployment.levels(handlers.queue),
        )
        return QueueRun(handlers, context, levels=levels, **of)

    def _invoker(self, handler: Consumer, report: Report, trace: Trace) -> Callable[[dict[str, Any]], Any]:
        return connected(handler, partial(self._deployment.connect, report=report), trace=trace)

    def _declare(self, worker: Worker, queues: Sequence[str], report: Report) -> None:
        environment = Environment(
            connect=partial(self._deployment.connect, report=report),
            clock=self._deployment.clock,
            report=report,
            serve=lambda *_: nullcontext(0),
            schedules=self.client.schedules,
        )
        with worker._declaring(environment, queues):
            pass

    def _jobs_of(self, messages: Iterable[Message], state: State) -> Iterator[ScheduledJob]:
        """Yield the jobs of messages, but for those that were cancelled."""
        jobs = [message.job() for message in messages]
        cancelled = cancelled_among([job.id for job in jobs], table=self._deployment.table) if jobs else set()
        yield from (replace(ScheduledJob.of_job(job), state=state) for job in jobs if job.id not in cancelled)

    def _job_of(self, message: Message, state: State) -> ScheduledJob:
        return self._fetched(replace(ScheduledJob.of_job(message.job()), state=state))

    def _fetched(self, job: ScheduledJob) -> ScheduledJob:
        """Return a job with its payload, wherever that is kept."""
        if job.payload_at is None:
            return job
        text = self._deployment.payloads.read(Pointer(bucket=job.payload_at.bucket, key=job.payload_at.key))
        return replace(job, payload=json.loads(text), payload_at=None)

    def _dead(self, message: Message) -> DeadJob:
        job = self._job_of(message, State.FAILED)
        fields = {name: getattr(job, name) for name in (each.name for each in dataclass_fields(ScheduledJob))}
        of = message.attributes
        fields |= {"error": error_of(message), "attempts": int(of.get(ATTEMPTS, "0"))}
        return DeadJob(**fields | {"reason": of.get(REASON, ""), "stack": of.get(STACK, "")})


def _is_interrupt(error: BaseException) -> bool:
    """Return whether somebody pressed Ctrl-C: a worker's handlers run in threads, which never see that."""
    return isinstance(error, KeyboardInterrupt)


def _config(queues: Queues) -> Deployment:
    if isinstance(queues, str | Path):
        return load(Path(queues))
    settings = dict(queues) if isinstance(queues, Mapping) else dict.fromkeys(queues)
    return Deployment.model_validate({"queues": settings})
