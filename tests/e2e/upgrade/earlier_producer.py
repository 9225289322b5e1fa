"""Producers that still have the predecessor's library: each is a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from dueline import Job, NewJob, Route, State
from dueline.errors import DuelineError, Unavailable
from local.emulator import CREDENTIALS, REGION
from tests.e2e.faults.processes import DIRECT, SITE
from tests.e2e.inbox import wait_until
from tests.e2e.upgrade import earlier_client
from tests.predecessor import environment_of


class EarlierProducer:
    """Schedules by one process of the predecessor's library after another: when one is dead, by the next.

    Over HTTP at a `url`; without one it is a direct client, whose requests go to the proxy `endpoint`, which says that
    a `direct` producer makes them. `is_dead` tells of each by its process id.
    """

    def __init__(
        self, checkout: Path, name: str, *, endpoint: str, url: str = "", is_dead: Callable[[int], bool]
    ) -> None:
        self._command = [sys.executable, earlier_client.__file__, name, url]
        found = {"AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": REGION, "AWS_LAMBDA_FUNCTION_NAME": DIRECT}
        keys = {name.upper(): value for name, value in CREDENTIALS.items()}
        self._env = environment_of(checkout, beside=SITE) | found | keys
        self._is_dead = is_dead
        self._reading = ThreadPoolExecutor(1)
        self._new()

    def schedule(self, queue: str, jobs: Sequence[NewJob]) -> list[Job | DuelineError]:
        """Schedule jobs in one call; a producer that dies answers nothing."""
        if self._is_dead(self._process.pid):
            # Killed as it connected.
            self._renew()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        told = {"queue": queue, "jobs": list(map(_asked, jobs))}
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()
        answer: Future[str] = self._reading.submit(process.stdout.readline)
        wait_until(lambda: answer.done() or self._is_dead(process.pid), every=0.01)
        if not self._is_dead(process.pid):
            return list(map(_answered, json.loads(answer.result())))
        self._renew()
        return [Unavailable("its producer was killed") for _ in jobs]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _renew(self) -> None:
        self.close()
        self._new()

    def _new(self) -> None:
        self._process = subprocess.Popen(
            self._command, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )


def _asked(job: NewJob) -> dict[str, Any]:
    return asdict(job) | {"at": job.at.isoformat() if job.at else None}


def _answered(told: dict[str, Any]) -> Job | DuelineError:
    if "error" in told:
        error = Unavailable(told["error"]) if told["may_be_tried"] else DuelineError(told["error"])
        error.job_id, error.key = told["job_id"], told["key"]
        return error
    due = datetime.fromisoformat(told["due"])
    route, state = Route[told["route"]], State(told["state"])
    return Job(id=told["id"], queue=told["queue"], due=due, route=route, state=state)
