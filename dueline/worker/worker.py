"""The worker: write a function, say which queue, and run."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dueline import otel
from dueline.model.job import queue_name
from dueline.ports import Clock
from dueline.worker.handler_runner import Handler, HandlerRunner
from dueline.worker.processes.link import Link
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.rate_limiter import common_time
from dueline.worker.received import ReceivedJob
from dueline.worker.refresh import check_settings
from dueline.worker.runner import Ending, Runner, event_loop, signalled
from dueline.worker.watch.event import Event, Report

if TYPE_CHECKING:
    import boto3

MOST_CONCURRENCY = 1000
CONCURRENCY = 32
GRACE_SECONDS = 25.0

Function = TypeVar("Function", bound=Callable[[ReceivedJob], Any])


class Worker:
    """Processes the jobs of a deployment's queues, each queue with a function of its own.

    `name` is the deployment's, in the account and region of the AWS session: by default the session that boto3 finds.
    At most `concurrency` jobs of a queue run at a time, in threads; coroutine functions run in one event loop.
    """

    def __init__(
        self, name: str = "dueline", *, session: "boto3.Session | None" = None, concurrency: int = CONCURRENCY
    ) -> None:
        self._name = name
        self._session = session
        self._concurrency = _checked(concurrency)
        self._handlers: dict[str, Handler] = {}
        self._ending = Ending()
        self._link: Link | None = None

    def job(self, queue: str, *, once: bool = False, concurrency: int | None = None) -> Callable[[Function], Function]:
        """Decorate the function that processes the jobs of a queue: it is called with each job, a ReceivedJob.

        If it returns, the job is done. If it raises, the job is retried as the queue's retry policy says, or after the
        delay of a `Retry`. After a `Discard`, or after its last attempt, the job goes to the dead-letter queue.
        With `once`, each job has its effect at most once: if an earlier attempt began and is not known to have ended,
        the function is not called again, and the job goes to the dead-letter queue after its last attempt.
        At most `concurrency` jobs of the queue run at a time, by default as many as `Worker` or `run` sets.
        """
        if queue_name(queue) in self._handlers:
            raise ValueError(f"queue {queue!r} has a handler already: {self._handlers[queue].call}")
        most = None if concurrency is None else _checked(concurrency)

        def decorated(function: Function) -> Function:
            self._handlers[queue] = Handler(queue=queue, call=function, once=once, concurrency=most)
            return function

        return decorated

    def run(
        self,
        *,
        concurrency: int | None = None,
        port: int | None = None,
        grace: float | timedelta = GRACE_SECONDS,
        queues: Sequence[str] | None = None,
    ) -> bool:
        """Process jobs until SIGTERM, SIGINT or `stop`; then give running jobs `grace` to end, seconds or a timedelta.

        Jobs that still run after that are put back into their queues. Returns whether all had ended. `queues` names the
        queues to process, by default all that have a function. `concurrency` takes the place of the constructor's.
        `/health` and `/metrics` are served on `port`.
        Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable before it begins.
        """
        handlers = self._chosen(queues)
        most = self._concurrency if concurrency is None else _checked(concurrency)
        grace = _seconds(grace)
        ending = self._ending
        try:
            with (
                event_loop() as loop,
                signalled(ending.ask_once if self._link else ending.ask),
                closing(connect(self._name, session=self._session)) as environment,
            ):
                workers = {each.queue: _queue_worker(each, environment, loop=loop, most=most) for each in handlers}
                runner = Runner(workers, clock=environment.clock)
                with self._watched(runner, environment, port=port):
                    return runner.run(ending, grace=grace)
        finally:
            if ending.is_asked:
                self._ending = Ending()

    def _watched(
        self, runner: Runner, environment: "Environment", *, port: int | None
    ) -> AbstractContextManager[object]:
        if self._link is not None:
            return self._link.watched(runner, self._ending)
        return nullcontext() if port is None else environment.serve(port, runner.ages)

    def stop(self) -> None:
        """End `run`, from any thread. A second call ends it without grace; a call before `run` ends it as it begins."""
        self._ending.ask()

    def _chosen(self, queues: Sequence[str] | None) -> list[Handler]:
        unknown = [queue for queue in queues or () if queue not in self._handlers]
        if unknown or not self._handlers:
            handled = ", ".join(self._handlers) or "none"
            raise ValueError(f"queues are {', '.join(unknown) or 'none'}: those with a handler are {handled}")
        return [self._handlers[queue] for queue in queues or self._handlers]


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What a worker needs of the outside: queues, a clock, a log and metrics, health over HTTP; `close` ends it."""

    connect: Callable[[str], QueueConnection]
    clock: Clock
    report: Report
    serve: Callable[[int, Callable[[], dict[str, float]]], AbstractContextManager[int]]
    close: Callable[[], None] = lambda: None


def connect(name: str, *, session: "boto3.Session | None") -> Environment:
    """Return what a worker of a deployment needs, on AWS."""
    from dueline.aws.worker_resources import WorkerResources
    from dueline.worker.watch.health import served
    from dueline.worker.watch.log import log
    from dueline.worker.watch.metrics import Metrics

    metrics, resources = Metrics(), WorkerResources(name, session=session)

    def report(event: Event) -> None:
        metrics(event)
        log(event)

    return Environment(
        connect=resources.connect,
        clock=resources.clock,
        report=report,
        serve=lambda port, ages: served(port, registry=metrics.registry, ages=ages),
        close=resources.clock.close,
    )


def _queue_worker(
    handler: Handler, environment: Environment, *, loop: asyncio.AbstractEventLoop, most: int
) -> QueueWorker:
    connection = environment.connect(handler.queue)
    check_settings(connection)
    parts: dict[str, Any] = {"report": environment.report, "jitter": random.random}
    runner = HandlerRunner(handler, connection, loop=loop, trace=otel.handling, **parts)
    return QueueWorker(
        connection, runner, concurrency=handler.concurrency or most, wall=partial(common_time, connection), **parts
    )


def supervised(worker: Worker, link: Link) -> None:
    """Let the runs of a worker be watched and ended by the supervisor of this process, who serves health and metrics.

    It hears of a second signal from the supervisor: whoever tells all processes to end tells this one twice.
    """
    worker._link = link


def _checked(concurrency: int) -> int:
    is_number = isinstance(concurrency, int) and not isinstance(concurrency, bool)
    if not (is_number and 1 <= concurrency <= MOST_CONCURRENCY):
        raise ValueError(f"concurrency is {concurrency!r}: it must be from 1 to {MOST_CONCURRENCY}, a whole number")
    return concurrency


def _seconds(grace: float | timedelta) -> float:
    seconds = grace.total_seconds() if isinstance(grace, timedelta) else grace
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    # No comparison holds for NaN.
    if not (is_number and seconds >= 0):
        raise ValueError(f"grace is {grace!r}: it must be 0 or more seconds, or a timedelta")
    return seconds
