"""The worker: write a function, name its queue, and run it."""

import asyncio
import os
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from dueline.core.job import queue_name
from dueline.core.ports import Clock
from dueline.errors import missing_extras_named
from dueline.worker.code_schedules import CodeSchedule, ScheduleSync, check_handled, with_schedules
from dueline.worker.delivery import BY_POLICY, Event, ReceivedJob, Report, Retries, checked_seconds
from dueline.worker.execution import Callback, Callbacks, HandlerRunner
from dueline.worker.handlers import Handler, Handlers, blamed_on_caller, check_function
from dueline.worker.queue_context import QueueContext
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.runner import Shutdown, SupervisorLink, event_loop, run, signal_handlers

if TYPE_CHECKING:
    import boto3

    from dueline.client.client import Client
    from dueline.client.schedules import Schedules

MOST_CONCURRENCY = 1000
CONCURRENCY = 32
GRACE_SECONDS = 25.0
_DECLARING_SECONDS = 5.0

Function = TypeVar("Function", bound=Callable[[ReceivedJob], Any])


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What a worker needs of the outside: queues, a clock, a log and metrics, health over HTTP; `close` ends it.

    `schedules` returns those of a queue, to declare them.
    """

    connect: Callable[[str], QueueContext]
    clock: Clock
    report: Report
    serve: Callable[[int, Callable[[], dict[str, float]]], AbstractContextManager[int]]
    schedules: "Callable[[str], Schedules]"
    close: Callable[[], None] = lambda: None


def connect(name: str, *, session: "boto3.Session | None") -> Environment:
    """Return what a worker of a deployment needs, on AWS. Raises ValueError where the API's URL is of another one."""
    if "DUELINE_URL" in os.environ and (addressed := os.environ.get("DUELINE_NAME", name)) != name:
        raise ValueError(f"the Worker is of {name!r}, but DUELINE_NAME is {addressed!r}: make it Worker({addressed!r})")
    with missing_extras_named():
        from dueline.aws.worker_deployment import WorkerDeployment
        from dueline.worker.log import log
        from dueline.worker.prometheus import Metrics, served

    metrics, deployment = Metrics(), WorkerDeployment(name, session=session)

    def report(event: Event) -> None:
        metrics(event)
        log(event)

    return Environment(
        connect=partial(deployment.connect, report=report),
        clock=deployment.clock,
        report=report,
        serve=partial(served, metrics=metrics),
        schedules=lambda queue: _client(name, session).schedules(queue),
        close=deployment.clock.close,
    )


@cache
def _client(name: str, session: "boto3.Session | None") -> "Client":
    from dueline.client.client import Client
    from dueline.core.retry import Patience

    # Jobs do not wait for long until schedules are declared. A local run sets where its API is.
    patience = Patience(attempts=3, seconds=_DECLARING_SECONDS)
    return Client.connect(name, url=os.environ.get("DUELINE_URL"), session=session, patience=patience)


class Worker:
    """Processes the jobs of a deployment's queues, each queue, or each kind of its jobs, with a function of its own.

    `name` is the deployment's, in the account and region of the AWS session: by default the session that boto3 finds.
    At most `concurrency` jobs of a queue run at a time, in threads; coroutine functions run in one event loop.
    `on_error` is called with a job and the exception of each attempt that fails, except `Retry` and `Discard`;
    `on_dead` with a job that goes to the dead-letter queue, and why. They run in the job's thread, and what they raise
    is logged. A message whose job cannot be read gets neither.
    Nothing is requested of AWS before `run`. Leaving a `with` block closes the worker.
    """

    def __init__(
        self,
        name: str = "dueline",
        *,
        session: "boto3.Session | None" = None,
        concurrency: int = CONCURRENCY,
        on_error: Callback | None = None,
        on_dead: Callback | None = None,
    ) -> None:
        self._callbacks = Callbacks(on_error=on_error, on_dead=on_dead)
        self._scheduled: list[CodeSchedule] = []
        self._name = name
        self._session = session
        self._concurrency = _checked(concurrency)
        self._handlers: dict[str, dict[str | None, Handler]] = {}
        self._shutdown = Shutdown()
        self._link: SupervisorLink | None = None
        self._ended: threading.Event | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def job(
        self,
        queue: str,
        *,
        kind: str | None = None,
        once: bool = False,
        concurrency: int | None = None,
        retry: Retries = BY_POLICY,
    ) -> Callable[[Function], Function]:
        """Decorate the function that processes the jobs of a queue: it is called with each job, a ReceivedJob.

        With a `kind` it gets the jobs of that kind, and the queue may have other functions. The one without a kind gets
        the jobs that no other takes.
        If it returns, the job is done. If it raises, the job is retried as `retry` says, by default as the queue's
        retry policy does, or after the delay of a `Retry`. After a `Discard`, or after its last attempt, the job goes
        to the dead-letter queue.
        With `once`, each job has its effect at most once: if an earlier attempt began and is not known to have ended,
        the function is not called again, and the job goes to the dead-letter queue after its last attempt.
        At most `concurrency` jobs of the queue run at a time, by default as many as `Worker` or `run` sets.
        Raises ValueError for a second function of one kind, and for what is not allowed; TypeError without a queue.
        """
        with blamed_on_caller():
            _check_queue(queue, example='@worker.job("emails")')

        def decorated(function: Function) -> Function:
            with blamed_on_caller():
                of: dict[str, Any] = {"concurrency": concurrency, "retry": retry}
                self._add(Handler(queue=queue, kind=kind, call=function, once=once, **of))
            return function

        return decorated

    def _add(self, handler: Handler) -> None:
        queue, kind, most = handler.queue, handler.kind, handler.concurrency
        others = self._handlers.setdefault(queue, {})
        if kind in others:
            which = f"kind {kind!r} of queue {queue!r}" if kind else f"queue {queue!r}"
            raise ValueError(f"{which} has a handler already: {others[kind].call}")
        differing = [each.concurrency for each in others.values() if each.concurrency not in (None, most)]
        if differing and most is not None:
            raise ValueError(f"concurrency is {most}: queue {queue!r} has {differing[0]} already, for all of its kinds")
        if most is not None:
            _checked(most)
        others[kind] = handler

    def schedule(
        self,
        queue: str,
        name: str = "",
        cron: str | None = None,
        *,
        every: timedelta | float | str | None = None,
        zone: str = "UTC",
        payload: object = None,
        start: datetime | None = None,
        end: datetime | None = None,
        count: int | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        priority: int = 1,
        jitter: timedelta | float | str = 0,
        catch_up: Literal["latest", "none", "all"] = "latest",
        overlap: Literal["allow", "skip"] = "allow",
    ) -> Callable[[Function], Function]:
        """Declare a schedule of a queue when the worker starts, and decorate the function that processes its jobs.

        Called without a function, it leaves the schedule's jobs to the queue's own. Any number of processes may declare
        it, as often as they like: one that is as it was stays as it is. Raises InvalidSchedule, with the reason.
        """
        arguments: dict[str, Any] = {"cron": cron, "every": every, "zone": zone, "payload": payload}
        arguments |= {"start": start, "end": end, "count": count, "kind": kind, "tenant": tenant}
        arguments |= {"priority": priority, "jitter": jitter, "catch_up": catch_up, "overlap": overlap}
        with blamed_on_caller():
            _check_queue(queue, example='@worker.schedule("emails", "digest", "0 9 * * *")')
            added = CodeSchedule(queue=queue, name=name, arguments=arguments)
            if any((each.queue, each.name) == (queue, name) for each in self._scheduled):
                raise ValueError(
                    f"schedule {name!r} of queue {queue!r} is in the code already: a name is of one schedule"
                )
            self._scheduled.append(added)

        def decorated(function: Function) -> Function:
            with blamed_on_caller():
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
        grace = checked_seconds("grace", grace, least=0)
        shutdown, ended = self._shutdown, threading.Event()
        self._ended = ended
        try:
            with (
                signal_handlers(shutdown.request_once if self._link else shutdown.request),
                event_loop() as loop,
                closing(connect(self._name, session=self._session)) as environment,
            ):
                clock = environment.clock
                workers = {each.queue: self._queue_worker(each, environment, loop, most) for each in handlers}
                ages = lambda: {queue: clock.monotonic() - each.heartbeat for queue, each in workers.items()}  # noqa: E731
                served = nullcontext() if port is None else environment.serve(port, ages)
                with self._declaring(environment.schedules, environment.report, list(workers)), served:
                    if self._link:
                        self._link.obey(shutdown)
                    on_ready = self._link.report_ready if self._link else lambda: None
                    return run(workers.values(), shutdown, grace=grace, clock=clock, on_ready=on_ready)
        finally:
            self._ended = None
            ended.set()
            if shutdown.is_requested:
                self._shutdown = Shutdown()

    def _queue_worker(
        self, handlers: Handlers, environment: Environment, loop: asyncio.AbstractEventLoop, most: int
    ) -> QueueWorker:
        runner = self._runner(handlers, environment.connect(handlers.queue), loop=loop, jitter=random.random)
        return QueueWorker(runner, concurrency=handlers.concurrency or most, jitter=random.random)

    def _runner(
        self,
        handlers: Handlers,
        context: QueueContext,
        *,
        loop: asyncio.AbstractEventLoop,
        jitter: Callable[[], float],
    ) -> HandlerRunner:
        """Return what runs the handlers of a queue. Raises ValueError where the queue's settings do not allow them."""
        context.check()
        handlers.check(context.settings)
        return HandlerRunner(handlers, context, loop=loop, jitter=jitter, callbacks=self._callbacks)

    def _declaring(
        self, schedules: "Callable[[str], Schedules]", report: Report, queues: Sequence[str]
    ) -> AbstractContextManager[object]:
        """Declare the schedules of queues; of several processes, the first does."""
        to_declare = [each for each in self._scheduled if each.queue in queues]
        if not to_declare or (self._link and self._link.number != 1):
            return nullcontext()
        return ScheduleSync(schedules, report=report, jitter=random.random).run(to_declare)

    def stop(self) -> None:
        """End `run`, from any thread. A second call ends it without grace; a call before `run` ends it as it begins."""
        self._shutdown.request()

    def close(self) -> None:
        """End `run` as `stop` does, if it runs in another thread, and wait until it has ended. Not for handlers."""
        if (ended := self._ended) is not None:
            self.stop()
            ended.wait()

    def _chosen(self, queues: Sequence[str] | None) -> list[Handlers]:
        names = dict.fromkeys([*self._handlers, *(each.queue for each in self._scheduled if each.call)])
        handled = {queue: with_schedules(queue, self._handlers.get(queue, {}), self._scheduled) for queue in names}
        unknown = [queue for queue in queues or () if queue not in handled]
        if unknown or not handled:
            names_text = ", ".join(handled) or "none"
            raise ValueError(f"queues are {', '.join(unknown) or 'none'}: those with a handler are {names_text}")
        check_handled(self._scheduled, handled)
        return [handled[queue] for queue in queues or handled]


def set_supervisor(worker: Worker, link: SupervisorLink) -> None:
    """Let the supervisor of this process end a worker's runs.

    Of signals the first counts: one that is sent to all processes comes twice, from the supervisor too.
    """
    worker._link = link


def _check_queue(queue: object, *, example: str) -> None:
    if callable(queue):
        raise TypeError(f"the decorator has no queue: write {example}")
    queue_name(queue)  # type: ignore[arg-type]  # it may be anything


def _checked(concurrency: int) -> int:
    if not (type(concurrency) is int and 1 <= concurrency <= MOST_CONCURRENCY):
        raise ValueError(f"concurrency is {concurrency!r}: it must be from 1 to {MOST_CONCURRENCY}, a whole number")
    return concurrency
