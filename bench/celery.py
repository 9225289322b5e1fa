"""Celery with ETA on Redis: the same load to one worker of four processes.

`celery -A bench.celery worker` is the worker.
"""

import math
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.harness import python, running, wait_until
from bench.load import RECORD, Load, Schedule, land, read_landed, wait_for_the_last
from bench.redis_queue import redis_server

BROKER = "BENCH_BROKER"
LAND = "bench.land"
_SENT_A_SECOND = 300


def app_at(broker: str) -> Any:
    """Return the application of a broker, its settings the defaults.

    What is not acknowledged within the visibility timeout, an hour, is delivered again, which must exceed the furthest
    ETA: https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout
    """
    # Installed for `make bench` alone.
    from celery import Celery

    celery: Any = Celery("bench", broker=broker)
    celery.conf.update(broker_connection_retry_on_startup=True, task_ignore_result=True)
    return celery


def celery_lateness(folder: Path, load: Load) -> dict[str, Any]:
    """Schedule a load, and let it land."""
    record = folder / "record"
    with ExitStack() as stack:
        broker = stack.enter_context(redis_server(folder))
        celery = app_at(broker)
        stack.callback(celery.close)
        command = python("celery", "-A", "bench.celery", "worker", "--concurrency", "4", "--loglevel", "WARNING")
        environment = {BROKER: broker, RECORD: str(record)}
        stack.enter_context(running(command, log=folder / "worker.log", environment=environment))
        # A job that is not counted.
        celery.send_task(LAND, args=(-1,))
        wait_until(lambda: bool(read_landed(record)), what="Celery's worker is ready")
        dues = load.dues()
        schedule = Schedule(begin=math.ceil(time.time() + len(dues) / _SENT_A_SECOND), jobs=dues)
        for due in dues:
            celery.send_task(LAND, args=(due.number,), eta=schedule.due(due))
        return wait_for_the_last(schedule, record).by_kind(dues)


if BROKER in os.environ:
    app = app_at(os.environ[BROKER])
    app.task(land, name=LAND)
