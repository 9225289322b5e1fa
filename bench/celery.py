"""Celery with ETA on Redis: the same load to one worker of four processes; and what a kill -9 of the worker does.

`celery -A bench.celery worker` is the worker.
"""

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.harness import Process, Progress, python, running, wait_until
from bench.load import RECORD, Load, Schedule, land, read_landed, wait_for, wait_for_the_last
from bench.redis_queue import redis_server

BROKER, VISIBILITY_TIMEOUT = "BENCH_BROKER", "BENCH_VISIBILITY_TIMEOUT"
LAND = "bench.land"
# By default, and scaled: a run does not wait for an hour.
DEFAULT_TIMEOUT, SHORT_TIMEOUT = 3600, 10
KILLED_LOAD = Load(first=1, steady=6, rush=0)
_SENT_A_SECOND = 300
_KILLED_AFTER = 4.0


def app_at(broker: str, *, visibility_timeout: int) -> Any:
    """Return the application of a broker. What is not acknowledged within `visibility_timeout` s is delivered again.

    It must exceed the furthest ETA, or jobs are run again and again, and is 3600 s by default. Source:
    https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout
    What is overdue is looked for each second, as the options of kombu's Redis transport allow; by default it is
    about every 100 s, and ten at a time: https://github.com/celery/kombu/pull/2558
    """
    # Installed for `make bench` alone.
    from celery import Celery

    celery: Any = Celery("bench", broker=broker)
    sweeps = {"unacked_restore_interval": 1, "unacked_restore_throttle": 1, "unacked_restore_limit": 1000}
    celery.conf.update(
        broker_transport_options={"visibility_timeout": visibility_timeout, **sweeps},
        broker_connection_retry_on_startup=True,
        task_ignore_result=True,
    )
    return celery


def celery_lateness(folder: Path, load: Load, progress: Progress, *, is_killed: bool = False) -> dict[str, Any]:
    """Schedule a load, and let it land. A kill -9 is half-way, of the worker that holds all jobs in its memory."""
    record, what = folder / "record", "Celery, its worker killed" if is_killed else "Celery"
    with ExitStack() as stack:
        broker = stack.enter_context(redis_server(folder))
        timeout = SHORT_TIMEOUT if is_killed else DEFAULT_TIMEOUT
        celery = app_at(broker, visibility_timeout=timeout)
        stack.callback(celery.close)
        environment = {BROKER: broker, VISIBILITY_TIMEOUT: str(timeout), RECORD: str(record)}
        worker = stack.enter_context(_worker(folder, environment))
        # A job that nobody counts.
        celery.send_task(LAND, args=(-1,))
        wait_until(lambda: bool(read_landed(record)), what="Celery's worker is ready")
        dues = load.dues()
        schedule = Schedule(begin=math.ceil(time.time() + len(dues) / _SENT_A_SECOND), jobs=dues)
        for due in dues:
            celery.send_task(LAND, args=(due.number,), eta=schedule.due(due))
        if is_killed:
            wait_for(schedule.begin + _KILLED_AFTER, what, progress, schedule=schedule)
            os.killpg(worker.pid, signal.SIGKILL)
            stack.enter_context(_worker(folder, environment))
        return wait_for_the_last(what, progress, schedule=schedule, record=record).by_kind(dues)


@contextmanager
def _worker(folder: Path, environment: dict[str, str]) -> Iterator[Process]:
    options = ("worker", "--concurrency", "4", "--loglevel", "WARNING")
    command = python("celery", "-A", "bench.celery", *options)
    with running(command, log=folder / "worker.log", environment=environment) as process:
        yield process


if BROKER in os.environ:
    app = app_at(os.environ[BROKER], visibility_timeout=int(os.environ[VISIBILITY_TIMEOUT]))
    app.task(land, name=LAND)
