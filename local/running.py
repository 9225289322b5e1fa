"""A deployment that runs in the local AWS: synthesized, deployed and ticking while its context is open."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path

from dueline.config.deployment import Deployment, load
from local.deploy import DeploymentError, deploy
from local.emulator import Emulator
from local.endpoints import Endpoints, find, publish
from local.signing_proxy import signing_proxy
from local.template import ROOT, configure, synthesized

HOME = Path(os.environ.get("DUELINE_HOME", ROOT / ".local"))
LOG = HOME / "emulator.log"
# The `tick_period` of periods.yaml.
TICK_SECONDS = 2.0

Step = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A running deployment: its emulator, where it is reached, its settings, and the ticks that failed so far."""

    emulator: Emulator
    endpoints: Endpoints
    deployment: Deployment
    tick_faults: list[BaseException]


def put_schedules(queues: Path, *, url: str) -> None:
    """Put the schedules that the file `queues` declares, as `make deploy` does last. Raises DeploymentError."""
    if any(queue.schedules for queue in load(queues).queues.values()):
        command = [sys.executable, "-m", "dueline", "--url", url, "schedules", "apply", str(queues)]
        env = {name: value for name, value in os.environ.items() if name != "DUELINE_NAME"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeploymentError(done.stderr.strip())


@contextmanager
def running(queues: Path, *, emulator: Emulator, step: Step, api_port: int = 0) -> Iterator[Running]:
    """Run the deployment that the file `queues` describes. `step` shows that something is being done, and when it is.

    `api_port` is the API's, 0 any that is free.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        configured = configure(queues, out=scratch)
        deployment = load(configured)
        with step("synthesize the stacks"):
            assembly = synthesized(configured, cache=HOME / "synthesized")
        with step(f"start the local AWS at {emulator.endpoint}"):
            stack.enter_context(emulator)
        with step("deploy the stacks into it"):
            deploy(emulator, assembly)
        endpoints = find(emulator, deployment)
        publish(emulator, deployment, endpoints)
        proxy = stack.enter_context(signing_proxy(endpoints.api, port=api_port))
        endpoints = replace(endpoints, api=proxy)
        put_schedules(queues, url=proxy)
        faults = stack.enter_context(fired_every(TICK_SECONDS, emulator, deployment.names.schedule_group))
        yield Running(emulator=emulator, endpoints=endpoints, deployment=deployment, tick_faults=faults)


@contextmanager
def fired_every(seconds: float, emulator: Emulator, group: str) -> Iterator[list[BaseException]]:
    """Invoke the target of every schedule of a group so often, one after another, until the context ends.

    Each time they are those that there are by then: a deployment may add some. One whose call goes on is left out.
    Yields the list into which faults go: a tick that failed once is no reason to stop the others.
    """
    firing = _Firing(emulator, group)
    threading.Thread(target=firing.run, args=(seconds,), daemon=True).start()
    try:
        yield firing.faults
    finally:
        # A tick may be waiting for a lease: what ends the emulator next ends it too.
        firing.stop.set()


class _Firing:
    """What is fired, by two clients of the emulator, and what failed of it."""

    def __init__(self, emulator: Emulator, group: str) -> None:
        self._scheduler, self._functions = emulator.client("scheduler"), emulator.client("lambda")
        self._group, self._under_way = group, set[str]()
        self.faults: list[BaseException] = []
        self.stop = threading.Event()

    def run(self, seconds: float) -> None:
        """Fire them in turn: all at once would each start a process of the function."""
        while not self.stop.is_set():
            with self._noting():
                pages = self._scheduler.get_paginator("list_schedules").paginate(GroupName=self._group)
                names = [schedule["Name"] for page in pages for schedule in page["Schedules"]]
                for name in names:
                    if name not in self._under_way:
                        self._under_way.add(name)
                        threading.Thread(target=self._fire, args=(name,), daemon=True).start()
                    self.stop.wait(seconds / len(names))
            self.stop.wait(0.1)  # there may be none yet

    def _fire(self, name: str) -> None:
        with self._noting(), suppress(self._scheduler.exceptions.ResourceNotFoundException):
            target = self._scheduler.get_schedule(GroupName=self._group, Name=name)["Target"]
            answer = self._functions.invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())
            # Whatever it says: a connection serves again once its answer was read.
            payload = answer["Payload"].read()
            if "FunctionError" in answer:
                raise RuntimeError(f"{target['Input']}: {json.loads(payload)}")
        self._under_way.discard(name)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except Exception as fault:
            if not self.stop.is_set():
                self.faults.append(fault)


@contextmanager
def pid_file(path: Path) -> Iterator[None]:
    """Keep this process's id in a file, locked, while the context is open.

    Raises DeploymentError when another process holds the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            pid = path.read_text()
            raise DeploymentError(f"it is up already, as process {pid}: end that with `make down`") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def pid_of(path: Path) -> int | None:
    """Return the id of the process that holds a PID file, if one does."""
    if not path.exists():
        return None
    with path.open() as file:
        try:
            flock(file, LOCK_SH | LOCK_NB)
        except BlockingIOError:
            return int(file.read())
    return None
