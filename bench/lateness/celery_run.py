"""Celery with ETA on Redis: the same load to one worker of four processes; and what a kill -9 of the worker does."""

import math
import os
import signal
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from bench.lateness import record
from bench.lateness.books import Run
from bench.lateness.plan import Load, Scheduled
from bench.lateness.redis_server import redis_server
from bench.lateness.waiting import wait_for, wait_for_the_last
from bench.part import Progress
from bench.processes import Process, running, wait_until

CONCURRENCY = 4
DEFAULT_VISIBILITY_TIMEOUT = 3600
# Scaled: a run does not wait for an hour.
SHORT_VISIBILITY_TIMEOUT = 10
KILLED_LOAD = Load(first=1, steady=6, rush=0)
_SENT_A_SECOND = 300
_KILLED_AFTER = 4.0


def measure(folder: Path, load: Load, progress: Progress) -> Run:
    """Schedule the load and let it land."""
    with ExitStack() as stack:
        celery = _Celery(folder / "celery", stack, visibility_timeout=DEFAULT_VISIBILITY_TIMEOUT)
        stack.enter_context(celery.worker())
        celery.warm_up()
        scheduled = celery.schedule(load, progress)
        wait_for_the_last("Celery: jobs land", progress, scheduled=scheduled, written=celery.written)
        return Run.read(scheduled, celery.written)


def measure_killed(folder: Path, progress: Progress) -> Run:
    """Kill -9 the worker, which holds all jobs in its memory, half-way, and have another in its place at once."""
    with ExitStack() as stack:
        celery = _Celery(folder / "celery-killed", stack, visibility_timeout=SHORT_VISIBILITY_TIMEOUT)
        worker = stack.enter_context(celery.worker())
        celery.warm_up()
        scheduled = celery.schedule(KILLED_LOAD, progress)
        what = "Celery, its worker killed: jobs land"
        wait_for(scheduled.begin + _KILLED_AFTER, what, progress, scheduled=scheduled)
        os.killpg(worker.pid, signal.SIGKILL)
        stack.enter_context(celery.worker())
        wait_for_the_last(what, progress, scheduled=scheduled, written=celery.written)
        return Run.read(scheduled, celery.written)


class _Celery:
    """A broker and its workers."""

    def __init__(self, folder: Path, stack: ExitStack, *, visibility_timeout: int) -> None:
        from bench.lateness import celery_jobs

        self._folder = folder
        self.written = folder / "record"
        broker = stack.enter_context(redis_server(folder))
        self._app: Any = celery_jobs.app_at(broker, visibility_timeout=visibility_timeout)
        stack.callback(self._app.close)
        self._land = celery_jobs.LAND
        self._environment = {
            celery_jobs.BROKER: broker,
            celery_jobs.VISIBILITY_TIMEOUT: str(visibility_timeout),
            record.PLACE: str(self.written),
        }

    def worker(self) -> AbstractContextManager[Process]:
        asked = ("worker", "--concurrency", str(CONCURRENCY), "--loglevel", "WARNING")
        command = [sys.executable, "-m", "celery", "-A", "bench.lateness.celery_jobs", *asked]
        return running(command, log=self._folder / "worker.log", environment=self._environment)

    def warm_up(self) -> None:
        """Send a job that nobody counts, and wait for it."""
        self._app.send_task(self._land, args=(-1,))
        wait_until(lambda: any(record.read(self.written)), what="Celery's worker is ready")

    def schedule(self, load: Load, progress: Progress) -> Scheduled:
        wishes = tuple(load.wishes())
        scheduled = Scheduled(begin=math.ceil(time.time() + len(wishes) / _SENT_A_SECOND), wishes=wishes)
        progress("Celery: schedule", 0, 1)
        for wish in wishes:
            self._app.send_task(self._land, args=(wish.number,), eta=scheduled.due(wish))
        return scheduled
