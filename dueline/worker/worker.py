"""The worker: write a function, say which queue, and run."""

import asyncio
import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dueline import otel
from dueline.model.job import queue_name
from dueline.ports import Clock
from dueline.worker.handler_runner import Handler, HandlerRunner
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.rate_limiter import common_time
from dueline.worker.received import ReceivedJob
from dueline.worker.refresh import check
from dueline.worker.runner import Ending, Runner, event_loop
from dueline.worker.watch.event import Event, Report

if TYPE_CHECKING:
    import boto3

MOST_CONCURRENCY = 1000
CONCURRENCY = 32
GRACE_SECONDS = 25.0

Function = TypeVar("Function", bound=Callable[[ReceivedJob], Any])


class Worker:
    """Works jobs of a deployment's queues off, each queue with the function that was given for it.

    The deployment is found in the account and region of the AWS session, by default the one that boto3 finds. At most
    `concurrency` jobs of a queue run at a time, in threads; coroutine functions run in one event loop.
    """

    def __init__(
        self, name: str = "dueline", *, session: "boto3.Session | None" = None, concurrency: int = CONCURRENCY
    ) -> None:
        self._name = name
        self._session = session
        self._concurrency = _checked(concurrency)
        self._handlers: dict[str, Handler] = {}
        self._ending = Ending()

    def job(self, queue: str, *, once: bool = False, concurrency: int | None = None) -> Callable[[Function], Function]:
        """Let a function work a queue off; it gets each job as a ReceivedJob.

        If it returns, the job is done. If it raises, the job is tried again as the queue's retry policy says, or after
        the delay of a `Retry`; after a `Discard`, or when its attempts are used up, it goes into the dead-letter queue.
        With `once`, each job has its effect once at most: one whose earlier attempt began, and is not known to have
        ended, is not run again, and goes there too when its attempts are used up.
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
        grace: float = GRACE_SECONDS,
        queues: Sequence[str] | None = None,
    ) -> bool:
        """Work until SIGTERM, SIGINT or `stop`; then receive no more, and give what runs `grace` seconds to end.

        What has not ended by then goes back into its queue; returns whether all had ended. `queues` names those to
        work at, by default all that have a handler. On `port`, `/health` and `/metrics` are answered.
        Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable before it begins.
        """
        handlers = self._chosen(queues)
        most = self._concurrency if concurrency is None else _checked(concurrency)
        ending = self._ending
        try:
            with (
                event_loop() as loop,
                _signalled(ending),
                closing(connect(self._name, session=self._session)) as equipped,
            ):
                workers = {each.queue: _queue_worker(each, equipped, loop=loop, most=most) for each in handlers}
                runner = Runner(workers, clock=equipped.clock)
                with equipped.serve(port, runner.ages) if port is not None else nullcontext():
                    return runner.work(ending, grace=grace)
        finally:
            if ending.is_asked:
                self._ending = Ending()

    def stop(self) -> None:
        """End `run`, from any thread; a second time, without its grace. Before `run`, the next one ends at once."""
        self._ending.ask()

    def _chosen(self, queues: Sequence[str] | None) -> list[Handler]:
        unknown = [queue for queue in queues or () if queue not in self._handlers]
        if unknown or not self._handlers:
            known = ", ".join(self._handlers) or "none"
            raise ValueError(f"queues are {', '.join(unknown) or 'none'}: those with a handler are {known}")
        return [self._handlers[queue] for queue in queues or self._handlers]


@dataclass(frozen=True, kw_only=True, slots=True)
class Equipped:
    """What a worker works with: its queues, what hears of its jobs, what answers on a port, and what ends it all."""

    connect: Callable[[str], QueueConnection]
    clock: Clock
    report: Report
    serve: Callable[[int, Callable[[], dict[str, float]]], AbstractContextManager[int]]
    close: Callable[[], None] = lambda: None


def connect(name: str, *, session: "boto3.Session | None") -> Equipped:
    """Return what a worker of a deployment works with on AWS."""
    from dueline.aws.worker_resources import WorkerResources
    from dueline.worker.watch.health import served
    from dueline.worker.watch.log import log
    from dueline.worker.watch.metrics import Metrics

    metrics, resources = Metrics(), WorkerResources(name, session=session)

    def report(event: Event) -> None:
        metrics(event)
        log(event)

    return Equipped(
        connect=resources.connect,
        clock=resources.clock,
        report=report,
        serve=lambda port, ages: served(port, registry=metrics.registry, ages=ages),
        close=resources.clock.close,
    )


def _queue_worker(handler: Handler, equipped: Equipped, *, loop: asyncio.AbstractEventLoop, most: int) -> QueueWorker:
    connection = equipped.connect(handler.queue)
    check(connection)
    parts: dict[str, Any] = {"report": equipped.report, "jitter": random.random}
    runner = HandlerRunner(handler, connection, loop=loop, trace=otel.handling, **parts)
    return QueueWorker(
        connection, runner, concurrency=handler.concurrency or most, wall=partial(common_time, connection), **parts
    )


@contextmanager
def _signalled(ending: Ending) -> Iterator[None]:
    """Let SIGTERM and SIGINT end the work, where this is the thread that hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ask = lambda *_: ending.ask()  # noqa: E731
    before = {each: signal.signal(each, ask) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _checked(concurrency: int) -> int:
    if not 1 <= concurrency <= MOST_CONCURRENCY:
        raise ValueError(f"concurrency is {concurrency}: it must be from 1 to {MOST_CONCURRENCY}")
    return concurrency
