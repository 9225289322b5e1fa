"""What a worker needs of the outside, and how it gets that on AWS."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from dueline.ports import Clock
from dueline.worker.declaring import Schedules
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Event, Report

if TYPE_CHECKING:
    import boto3

_DECLARING_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What a worker needs of the outside: queues, a clock, a log and metrics, health over HTTP; `close` ends it.

    `schedules` returns those of a queue, to declare them.
    """

    connect: Callable[[str], QueueConnection]
    clock: Clock
    report: Report
    serve: Callable[[int, Callable[[], dict[str, float]]], AbstractContextManager[int]]
    schedules: Callable[[str], Schedules]
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
        log(event, deployment=name)

    return Environment(
        connect=resources.connect,
        clock=resources.clock,
        report=report,
        serve=lambda port, ages: served(port, registry=metrics.registry, ages=ages),
        schedules=_schedules(name, session=session),
        close=resources.clock.close,
    )


def _schedules(name: str, *, session: "boto3.Session | None") -> Callable[[str], Schedules]:
    """Return what finds the schedules of a queue, over a client that is connected when it is first asked."""

    @cache
    def client() -> Any:
        from dueline.client.client import Client
        from dueline.retry.patience import Patience

        # Jobs do not wait for long until schedules are declared. A local run tells where its API is.
        patience = Patience(attempts=3, seconds=_DECLARING_SECONDS)
        return Client.connect(name, url=os.environ.get("DUELINE_URL"), session=session, patience=patience)

    return lambda queue: client().schedules(queue)
