"""The worker: write a function, say which queue, and run."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dueline import otel
from dueline.model.job import queue_name
from dueline.worker.declaring import Declaring
from dueline.worker.environment import Environment, connect
from dueline.worker.function import check_function
from dueline.worker.handler_runner import Handler, HandlerRunner
from dueline.worker.processes.link import Link
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.rate_limiter import common_time
from dueline.worker.received import ReceivedJob
from dueline.worker.refresh import check_settings
from dueline.worker.runner import Ending, Runner, event_loop, signalled
from dueline.worker.scheduled import ScheduledInCode

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
    `owner` is the name under which the schedules in this code are declared: those under it that are no more in the code
    are told in the log and, with `prune`, deleted.
    """

    def __init__(
        self,
        name: str = "dueline",
        *,
        session: "boto3.Session | None" = None,
        concurrency: int = CONCURRENCY,
        owner: str | None = None,
        prune: bool = False,
    ) -> None:
        if prune and not owner:
            raise ValueError("prune is True without an owner: give owner=, so that it is known which are this code's")
        self._owner, self._prune = owner, prune
        self._scheduled = ScheduledInCode()
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

    def schedule(
        self,
        queue: str,
        name: str,
        *,
        cron: str | None = None,
        every: timedelta | float | None = None,
        zone: str = "UTC",
        payload: object = None,
        start: datetime | None = None,
        end: datetime | None = None,
        count: int | None = None,
        tenant: str | None = None,
        priority: int = 1,
        jitter: timedelta | float = 0,
        catch_up: Literal["latest", "none", "all"] = "latest",
        overlap: Literal["allow", "skip"] = "allow",
        description: str | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a schedule of a queue when the worker starts, and decorate the function that processes its jobs.

        Called without a function, it leaves the schedule's jobs to the queue's own. Any number of processes may declare
        it, as often as they like: one that is as it was stays as it is. Raises InvalidSchedule, with the reason.
        """
        given = {"cron": cron, "every": every, "zone": zone, "payload": payload, "start": start, "end": end}
        given |= {"count": count, "tenant": tenant, "priority": priority, "jitter": jitter, "catch_up": catch_up}
        added = self._scheduled.add(queue_name(queue), name, {**given, "overlap": overlap, "description": description})

        def decorated(function: Function) -> Function:
            check_function(function, queue=queue)
            added.call = function
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
        Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable before it begins, and what refuses one of the
        schedules in the code: InvalidSchedule, TooManySchedules or TooManyChanges.
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
                with self._declared(environment, list(workers)), self._watched(runner, environment, port=port):
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

    def _declared(self, environment: "Environment", queues: Sequence[str]) -> AbstractContextManager[object]:
        """Declare the schedules of queues; of several processes, the first does."""
        of_queues = [(queue, self._scheduled.of(queue)) for queue in queues]
        wanted = [(queue, scheduled) for queue, scheduled in of_queues if scheduled or self._owner]
        if not wanted or (self._link and self._link.number != 1):
            return nullcontext()
        return Declaring(
            scheduled=wanted,
            schedules=environment.schedules,
            owner=self._owner,
            prune=self._prune,
            report=environment.report,
            jitter=random.random,
        ).declared()

    def stop(self) -> None:
        """End `run`, from any thread. A second call ends it without grace; a call before `run` ends it as it begins."""
        self._ending.ask()

    def _chosen(self, queues: Sequence[str] | None) -> list[Handler]:
        handled = list(dict.fromkeys([*self._handlers, *self._scheduled.queues()]))
        unknown = [queue for queue in queues or () if queue not in handled]
        if unknown or not handled:
            known = ", ".join(handled) or "none"
            raise ValueError(f"queues are {', '.join(unknown) or 'none'}: those with a handler are {known}")
        self._scheduled.check_queues(handled)
        return [self._scheduled.handler(queue, self._handlers.get(queue)) for queue in queues or handled]


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
